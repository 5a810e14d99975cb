package portal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

const (
	// eventsScan is about how many events a page of events reads in search of those that it shows.
	eventsScan = 50_000
	// eventsPart and eventsBytes bound what is read at once.
	eventsPart, eventsBytes = 500, 256 << 10
	// firstEvents is the period that a page reads first, and eventsGrowth how many times as long the
	// next one is: it begins at the end, and most pages are full soon.
	firstEvents, eventsGrowth = time.Minute, 8
)

// eventKind is a kind of events to filter by.
type eventKind struct {
	Value, Label string
	// types are the types of the events, as in domain.EventFilter; nil for all.
	types   []string
	selects func(logEvent) bool
}

// eventKinds are the kinds of events to filter by.
var eventKinds = []eventKind{
	{"important", "Important", nil, func(e logEvent) bool { return severityOf(e) > severityRoutine }},
	{"doors", "Doors and locks", []string{"channel.*"}, isOfDoor},
	{"alarms", "Alarms and warnings", nil, func(e logEvent) bool {
		return severityOf(e) >= severityWarning
	}},
	{"only-alarms", "Alarms", nil, func(e logEvent) bool { return severityOf(e) == severityAlarm }},
	{"commands", "Commands", []string{"channel.desired"}, nil},
	{"codes", "Access codes", []string{"credential.*"}, nil},
	{"devices", "Devices: joined, removed, out of reach", []string{"device.*"}, nil},
	{"hubs", "Hubs: connections", []string{"hub.*"}, nil},
	{"rules", "Rules", []string{"rule.*"}, nil},
	{"readings", "Readings", []string{"channel.observed"}, func(e logEvent) bool {
		return severityOf(e) == severityRoutine
	}},
	{"all", "Everything", nil, nil},
}

// isOfDoor reports whether an event is about a lock, a barrier or a contact, or about the use of
// one: alarm channels report that too.
func isOfDoor(event logEvent) bool {
	var c channelEvent
	if json.Unmarshal(event.Data, &c) != nil {
		return false
	}
	switch c.Key {
	case "lock", "barrier", "contact":
		return true
	case "alarm":
		var alarm attention.AlarmReport
		if json.Unmarshal(c.Value, &alarm) != nil {
			return false
		}
		meaning, _ := alarm.Meaning()
		return slices.Contains([]attention.Meaning{
			attention.MeansEvent, attention.MeansRejected, attention.Meaning(attention.Jammed),
			attention.Meaning(attention.NotLocked), attention.Meaning(attention.Alarm),
		}, meaning)
	}
	return false
}

// logDevice is a device to filter by.
type logDevice struct{ ID, Name string }

func deviceNumber(id int64) string { return "Device " + formatInt(id) }

// eventSearch selects events of the hubs of an organization, or of one of them.
type eventSearch struct {
	query orgEventsQuery
	kind  eventKind
	sites []domain.Site
	// hubs are the hubs of the organization by id, and siteNames the names of its sites.
	hubs      map[domain.HubID]hubState
	siteNames map[string]string
	// found are the devices that the query finds, all if it names none. devices are their names.
	found   []domain.FoundDevice
	devices map[domain.HubID]map[int64]string
	// hubDevices are all devices of the hub, if the search is for one.
	hubDevices []logDevice
	// units are the units of the channels of hubs, which are read when they are needed.
	units map[domain.HubID]map[int64]deviceInfo
	by    *commanders
}

// eventSearch reads the search from the page's address.
func (req *request) eventSearch() (*eventSearch, error) {
	zone := req.typedZone()
	query := orgEventsQuery{
		Hub: req.hub, Device: truncate(req.queryValue("device"), longestSearch),
		Kind: req.queryValue("kind"), Who: truncate(req.queryValue("who"), longestSearch),
	}
	query.From, _ = parseClock(req.queryValue("from"), zone) // zero for no valid time
	query.To, _ = parseClock(req.queryValue("to"), zone)
	if req.queryValue("details") == "1" {
		query.Details = "1"
	}
	if req.hub == "" {
		query.Site = req.queryValue("site")
	}
	return req.newEventSearch(query)
}

// newEventSearch returns the search of a query.
func (req *request) newEventSearch(query orgEventsQuery) (*eventSearch, error) {
	s := &eventSearch{
		query:   query,
		hubs:    map[domain.HubID]hubState{},
		devices: map[domain.HubID]map[int64]string{},
		units:   map[domain.HubID]map[int64]deviceInfo{}, by: req.commanders(maxCommands),
	}
	for _, wanted := range []string{query.usualKind(), query.Kind} {
		for _, kind := range eventKinds {
			if kind.Value == wanted {
				s.kind, s.query.Kind = kind, wanted
			}
		}
	}
	sites, err := req.allSites()
	if err != nil {
		return nil, err
	}
	s.sites, s.siteNames = sites, siteNames(sites)
	states, err := req.hubStates(req.ctx, req.org, req.hub)
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		s.hubs[state.ID] = state
	}
	if req.hub != "" {
		return s, s.readDevices()
	}
	s.found, err = req.Reported.FindDevices(req.ctx, req.org, s.query.Device, nil, maxFoundDevices)
	if err != nil && (s.query.Device != "" || codeOf(err) != domain.CodeServiceUnavailable) {
		return nil, err // without names, events have the numbers of their devices
	}
	for _, d := range s.found {
		if s.devices[d.HubID] == nil {
			s.devices[d.HubID] = map[int64]string{}
		}
		s.devices[d.HubID][d.DeviceID] = d.Name
	}
	return s, nil
}

// readDevices reads the devices of the hub, and keeps the chosen one, known or not.
func (s *eventSearch) readDevices() error {
	req, chosen := s.by.req, int64(0)
	infos, err := req.deviceInfos(req.ctx, req.org, req.hub)
	if err != nil {
		return err
	}
	if chosen, err = strconv.ParseInt(s.query.Device, 10, 64); err != nil {
		s.query.Device = ""
	} else if _, known := infos[chosen]; !known {
		infos[chosen] = deviceInfo{}
	}
	names := map[int64]string{}
	for id, info := range infos {
		name := cmp.Or(info.Name, deviceNumber(id))
		s.hubDevices = append(s.hubDevices, logDevice{formatInt(id), name})
		if s.query.Device == "" || id == chosen {
			names[id] = name
		}
	}
	slices.SortFunc(s.hubDevices, func(a, b logDevice) int {
		return cmp.Or(compareNatural(a.Name, b.Name), compareNatural(a.ID, b.ID))
	})
	s.units[req.hub], s.devices[req.hub] = infos, names
	return nil
}

// filter returns the filter of the feed, and whether it can select an event at all.
func (s *eventSearch) filter() (filter domain.EventFilter, any bool) {
	filter.Types = s.kind.types
	if s.query.Site != "" {
		filter.Sites = []string{s.query.Site}
	}
	if s.query.Hub != "" {
		filter.Hubs = []domain.HubID{s.query.Hub}
		return filter, true
	}
	if s.query.Device == "" {
		return filter, true
	}
	for hub := range s.devices {
		filter.Hubs = append(filter.Hubs, hub)
	}
	slices.Sort(filter.Hubs) // pages with the same filter go on with the same merge
	return filter, len(filter.Hubs) > 0
}

// begin returns the time from which events are read, in nanoseconds since 1970; 0 for the oldest.
func (s *eventSearch) begin() int64 {
	if s.query.From.IsZero() {
		return 0
	}
	return s.query.From.Add(-time.Minute).UnixNano() // a hub's clock may be a little ahead
}

// selects reports whether an event is selected, but for who caused it.
func (s *eventSearch) selects(event logEvent, stored int64) bool {
	if event.Type == domain.EventFeedGap {
		return s.query.Who == ""
	}
	if s.query.Device != "" {
		if event.DeviceID == nil {
			return false
		}
		if _, ok := s.devices[event.HubID][*event.DeviceID]; !ok {
			return false
		}
	}
	at := event.Time
	if event.ClockTrusted != nil && !*event.ClockTrusted {
		at = time.Unix(0, stored)
	}
	return !at.Before(s.query.From) && (s.query.To.IsZero() || at.Before(s.query.To)) &&
		(s.kind.selects == nil || s.kind.selects(event))
}

// row returns the row of an event; ok is false if it was caused by somebody else than the query's.
func (s *eventSearch) row(event logEvent) (row orgEventRow, ok bool, err error) {
	hub := s.hubs[event.HubID]
	row.place = place{Site: s.siteNames[hub.SiteID], Hub: string(event.HubID)}
	row.SiteID = hub.SiteID
	if hub.Name != "" {
		row.Hub = hub.Name
	}
	if event.DeviceID != nil {
		if row.Device = s.devices[event.HubID][*event.DeviceID]; row.Device == "" {
			row.Device = deviceNumber(*event.DeviceID)
		}
	}
	row.logEntry = entryOf(event, s.unitsOf(event))
	if err := s.by.name(&row.logEntry); err != nil {
		return row, false, err
	}
	row.Text = row.textBesideBy()
	wanted := strings.ToLower(s.query.Who)
	return row, strings.Contains(strings.ToLower(row.By+" "+row.Text), wanted), nil
}

// unitsOf returns the units of the channels of a hub, if an event is about a reading.
func (s *eventSearch) unitsOf(event logEvent) map[int64]deviceInfo {
	if severityOf(event) != severityRoutine {
		return nil
	}
	known, ok := s.units[event.HubID]
	if !ok {
		req := s.by.req
		known, _ = req.deviceInfos(req.ctx, req.org, event.HubID) // readings have no unit then
		s.units[event.HubID] = known
	}
	return known
}

// scanEnd is where a scan has ended.
type scanEnd struct {
	// scanned is how many events it has read. done reports that it has reached its end.
	scanned int
	done    bool
}

// scanEvents calls use with the selected events that were stored from one time to another, in
// nanoseconds since 1970, oldest first, until use returns false or about most events are read.
func (req *request) scanEvents(
	s *eventSearch, from, until int64, most int, use func(orgEventRow) (more bool, err error),
) (end scanEnd, err error) {
	filter, any := s.filter()
	if !any {
		return scanEnd{done: true}, nil
	}
	position := ""
	if from > 0 {
		position = req.Feed.Since(time.Unix(0, from))
	}
	for end.scanned < most {
		part, err := req.Feed.Part(
			req.ctx, req.org, filter, position, eventsPart, eventsBytes, 0,
		)
		if err != nil {
			return end, err
		}
		for _, encoded := range part.Events {
			if encoded.StoredNanos >= until {
				end.done = true
				return end, nil
			}
			event, ok := decode(encoded)
			if !ok || !s.selects(event, encoded.StoredNanos) {
				continue
			}
			row, ok, err := s.row(event)
			if err != nil {
				return end, err
			}
			row.stored = encoded.StoredNanos
			if !ok {
				continue
			}
			if more, err := use(row); err != nil || !more {
				return end, err
			}
		}
		end.scanned += max(part.Scanned, 1)
		position = part.Next
		if !part.HasMore {
			end.done = true
			break
		}
	}
	return end, nil
}

// foundEvents is a page of events, newest first.
type foundEvents struct {
	Rows []orgEventRow
	// Older is where the next page begins; zero if there is none. SearchedTo is its time if the
	// page has ended early.
	Older      eventPlace
	SearchedTo time.Time
}

// eventPlace is a place in the events of a search. Many events are stored at the same moment.
type eventPlace struct {
	// At is when the next events were stored at the latest, in nanoseconds since 1970. Skip is how
	// many of the events of that very moment come before them.
	At   int64
	Skip int
}

func (p eventPlace) String() string { return fmt.Sprintf("%d.%d", p.At, p.Skip) }

// parseEventPlace returns the place of a text, and the newest events for what is none.
func parseEventPlace(text string) (p eventPlace) {
	if n, err := fmt.Sscanf(text, "%d.%d", &p.At, &p.Skip); n != 2 || err != nil || p.Skip < 0 {
		return eventPlace{}
	}
	return p
}

// newestEvents returns the newest selected events from a place on, the zero value for the newest. It
// reads period by period back from there, each longer than the one before, as long as it has found
// few.
func (req *request) newestEvents(s *eventSearch, place eventPlace) (foundEvents, error) {
	var found foundEvents
	oldest := max(s.begin(), req.info.At.Add(-req.Retention).UnixNano())
	end := req.info.At.Add(time.Minute).UnixNano() // what is stored meanwhile may be shown
	if place.At > 0 {
		end = min(end, place.At+1)
	}
	scanned, skip := 0, place.Skip
	for window := firstEvents; end > oldest; window *= eventsGrowth {
		begin := max(end-int64(window), oldest)
		most := 2 * eventsScan
		if window == firstEvents {
			most = exportScan // or there would be no progress
		}
		var rows []orgEventRow
		scan, err := req.scanEvents(s, begin, end, most, func(row orgEventRow) (bool, error) {
			if rows = append(rows, row); len(rows) > 2*(logPageEvents+skip) {
				rows = slices.Clone(rows[len(rows)-logPageEvents-1-skip:])
			}
			return true, nil
		})
		if err != nil {
			return found, err
		}
		if !scan.done { // the period has too many events: the next page begins with a short one
			break
		}
		slices.Reverse(rows)
		for _, row := range rows {
			if skip > 0 && row.stored == place.At {
				skip--
				continue
			}
			if len(found.Rows) == logPageEvents {
				found.Older = place.after(found.Rows)
				return found, nil
			}
			found.Rows = append(found.Rows, row)
		}
		end = begin
		if scanned += scan.scanned; scanned >= eventsScan {
			break
		}
	}
	if end > oldest {
		found.Older, found.SearchedTo = eventPlace{At: end - 1}, time.Unix(0, end)
	}
	return found, nil
}

// after returns the place after the events that were found from this place on.
func (p eventPlace) after(rows []orgEventRow) eventPlace {
	next := eventPlace{At: rows[len(rows)-1].stored}
	for _, row := range rows {
		if row.stored == next.At {
			next.Skip++
		}
	}
	if next.At == p.At {
		next.Skip += p.Skip
	}
	return next
}
