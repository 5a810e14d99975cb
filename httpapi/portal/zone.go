package portal

import (
	"time"
	_ "time/tzdata" // containers have no time zones
)

const (
	// zoneCookie has the name of the browser's time zone, such as Europe/Berlin. Every page sets it
	// by a script, so the pages after the first have local times. It is no secret.
	zoneCookie = "hubcloud_zone"
	// longestZone is longer than the name of every time zone.
	longestZone = 64
)

// zone returns the reader's time zone: the cookie's, or UTC.
func (req *request) zone() *time.Location {
	cookie, err := req.http.Cookie(zoneCookie)
	if err != nil {
		return time.UTC
	}
	return zoneOf(cookie.Value)
}

// zoneOf returns the time zone of that name, and UTC for an unknown one.
func zoneOf(name string) *time.Location {
	if len(name) > longestZone || name == "Local" { // the zone of the service's machine
		return time.UTC
	}
	zone, err := time.LoadLocation(name) // it rejects paths
	if err != nil {
		return time.UTC
	}
	return zone
}

// typedZone returns the zone of the times in the page's address: of a link by a reader in another
// zone, or the reader's.
func (req *request) typedZone() *time.Location {
	if name := req.queryValue("zone"); name != "" {
		return zoneOf(name)
	}
	return req.zone()
}

// zoneTexts returns the name of a time's zone, and the name with its abbreviation.
func zoneTexts(now time.Time) (name, text string) {
	name, text = now.Location().String(), now.Format("MST")
	if text != name {
		text = name + " (" + text + ")"
	}
	return name, text
}

// clockLayout is the format of a datetime-local field, which omits zero seconds.
const clockLayout = "2006-01-02T15:04"

// parseClock parses a time of a datetime-local field, which is in a zone, or in RFC 3339. It
// reports whether it is one.
func parseClock(typed string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{clockLayout, clockLayout + ":05", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, typed, zone); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
