package portal

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
)

// Layout is the data of the frame that all pages share. Views embed it.
type Layout struct {
	// Heading is the page's title.
	Heading string
	// Counts is how much needs attention in the organization, for the title of the dashboard; "" for
	// nothing. A script shows it in the titles of other pages.
	Counts string
	// Section is the page's entry in the navigation; "" for none.
	Section string
	// page is the address of the page, relative to the organization's.
	page string
	// Inner reports whether the page shows the way to it in place of the section's tabs.
	Inner bool
	// Collapsed reports whether the side bar shows icons only.
	Collapsed bool
	// Root is the relative path from the page to /portal/.
	Root string
	// Email is the address of the person who is signed in, and FormToken the masked token of the
	// session's forms. Both are empty without a session.
	Email, FormToken string
	// Member is the person's membership in the page's organization; zero on other pages.
	Member domain.MemberAccess
	// ViewOnly reports whether the person may only look.
	ViewOnly bool
	// Memberships are the person's memberships.
	Memberships []domain.MemberAccess
	// Notice is the result of the last action; mostly empty. NoticeWaits reports that it was not done.
	Notice      string
	NoticeWaits bool
	// NoticeHub is the hub that the notice is about; mostly empty. noticeAbout is that or another id.
	NoticeHub   domain.HubID
	noticeAbout string
	// NoticeHere reports whether the page is about that hub.
	NoticeHere bool
	// Undo is a change that the page offers to undo, as a value of its form; mostly empty.
	Undo string
	// Draft is a form that was not processed because its session had ended; mostly nil.
	Draft *draft
	// Now is the time of the request, in the reader's time zone.
	Now       time.Time
	RequestID string
	// Charting reports whether the page loads the chart library.
	Charting bool
	// Scripts are the assets that the page loads as modules.
	Scripts []string
}

// layout returns the frame of a page. It removes the cookies of the notice, the undo and the draft, so
// each page calls it once.
func (req *request) layout(heading, section string) Layout {
	layout := Layout{
		Heading: heading, Section: section, Root: req.root(),
		Email: req.session.Email, FormToken: maskToken(req.session.FormToken),
		Member: req.member, ViewOnly: req.mayOnlyLook(),
		Now: req.info.At.In(req.zone()), RequestID: req.info.RequestID,
		Collapsed: sideCollapsed(req.http),
	}
	if req.session.Email != "" {
		layout.Memberships = req.People.Memberships(req.session.Email)
	}
	_, layout.page, _ = strings.Cut(req.http.URL.Path, "/"+req.org+"/")
	name, about, _ := strings.Cut(req.pop(req.cookies.notice()), " ")
	layout.NoticeWaits, layout.noticeAbout = slices.Contains(notDone, name), about
	layout.NoticeHub, _ = domain.ParseHubID(layout.noticeAbout) // "" if the notice is about no hub
	layout.NoticeHere = layout.NoticeHub != "" && layout.NoticeHub == req.hub
	layout.Notice = fill(
		notices[name], "hub", cmp.Or(req.hubTitle, layout.noticeAbout),
		"site", cmp.Or(req.hubSite, "its site"),
	)
	if req.http.Method == http.MethodGet {
		layout.Undo, layout.Draft = req.popUndo(), req.popDraft()
	}
	return layout
}

// watched is how many organizations' dangers to people a page outside organizations shows.
const watched = 20

// Several reports whether the person is a member of more than one organization.
func (l Layout) Several() bool { return len(l.Memberships) > 1 }

// Watched returns the memberships in the organizations whose dangers to people are shown on a page
// that is in none.
func (l Layout) Watched() []domain.MemberAccess {
	return l.Memberships[:min(len(l.Memberships), watched)]
}

// setNotice makes the next page show the notice of that name, one of notices. An id may
// follow the name, with a space between. The cookie holds
// a name and not the text, so that a planted cookie cannot make a page show other text.
func (req *request) setNotice(name string) {
	http.SetCookie(req.w, req.cookies.make(req.cookies.notice(), name, time.Minute))
}

// when renders how long ago something happened, with the exact time as title, in the zone of now
// and in UTC. Clocks differ: what seems to be ahead is just now.
func when(at, now time.Time) template.HTML {
	shown := at
	if at.After(now) {
		shown = now
	}
	return timeElement(at, "", relative(shown, now), now)
}

// until is when for a time that may be ahead.
func until(at, now time.Time) template.HTML {
	return timeElement(at, " data-ahead", relative(at, now), now)
}

func timeElement(at time.Time, attribute, text string, now time.Time) template.HTML {
	at = at.In(now.Location())
	// Safe: no part of it comes from input but the name of a zone, which is one of Go's database.
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s"%s>%s</time>`,
		at.UTC().Format(time.RFC3339), html.EscapeString(exactTime(at)), attribute, text))
}

// exactTime returns a time in its zone and, if that is not UTC, in UTC.
func exactTime(at time.Time) string {
	const layout = "2 January 2006, 15:04:05 MST"
	if at.Location() == time.UTC {
		return at.Format(layout)
	}
	return at.Format(layout) + " (" + at.UTC().Format("15:04:05 MST") + ")"
}

// clock renders a time of a log: the day and the time of day in the zone of now, with UTC as title.
func clock(at, now time.Time) template.HTML {
	at = at.In(now.Location())
	// Safe: no part of it comes from input.
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s" data-exact>%s</time>`,
		at.UTC().Format("2006-01-02T15:04:05.000Z"), // HTML allows three digits
		at.UTC().Format("2 January 2006, 15:04:05.000 UTC"), at.Format("Mon 2 Jan 15:04:05")))
}

// relative returns how long ago, or how far ahead, a time is; beyond a month, the date.
func relative(at, now time.Time) string {
	distance, ahead := now.Sub(at), false
	if distance < 0 {
		distance, ahead = -distance, true
	}
	var length string
	switch {
	case distance < 45*time.Second && !ahead:
		return scriptTexts["just-now"]
	case distance < 90*time.Minute:
		length = counted(max(1, int(distance.Round(time.Minute)/time.Minute)), "minute")
	case distance < 36*time.Hour:
		length = counted(int(distance.Round(time.Hour)/time.Hour), "hour")
	case distance < 31*24*time.Hour:
		length = counted(int((distance+12*time.Hour)/(24*time.Hour)), "day")
	default:
		return at.Format("2 January 2006")
	}
	if ahead {
		return fill(scriptTexts["ahead"], "length", length)
	}
	return fill(scriptTexts["ago"], "length", length)
}

// durationText returns a duration in the largest unit that divides it: "7 days", "24 hours" (one
// day), "90 minutes". A duration with a part of a second is formatted as time.Duration does.
func durationText(d time.Duration) string {
	if n, unit, ok := domain.LargestUnit(d); ok {
		return counted(n, unit)
	}
	return d.String()
}
