package portal

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"hubcloud/domain"
)

const (
	// maxFoundDevices is how many devices the events page knows by name, and suggestedDevices how
	// many names it suggests.
	maxFoundDevices  = 10_000
	suggestedDevices = 300
)

// orgEventsQuery is the part of the address of the events page that selects events.
type orgEventsQuery struct {
	// Hub is the hub whose page it is, of which Device is the number of a device. It is "" on the
	// page of the organization, where Device are words that a device and its place have.
	Hub domain.HubID
	// Site is the id of a site, and Kind the name of one of eventKinds.
	Site, Device, Kind string
	// Who is a part of the name of whoever caused the event.
	Who      string
	From, To time.Time
	// Details is "1" if the page shows machine types and raw fields.
	Details string
}

// usualKind returns the kind that a page shows at first.
func (q orgEventsQuery) usualKind() string {
	if q.Hub != "" {
		return "all"
	}
	return "important"
}

// encode returns the query of an address with these filters.
func (q orgEventsQuery) encode(more ...string) string {
	values := url.Values{}
	for name, value := range map[string]string{
		"site": q.Site, "device": q.Device, "kind": q.Kind, "who": q.Who,
		"from": rfc3339(q.From), "to": rfc3339(q.To), "details": q.Details,
	} {
		if value != "" && (name != "kind" || value != q.usualKind()) {
			values.Set(name, value)
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return "?" + values.Encode()
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// timeStep is a link to another time.
type timeStep struct {
	Label, Address string
}

// timeSteps are the steps that the page offers.
var timeSteps = []struct {
	label string
	by    time.Duration
}{
	{"− 1 hour", -time.Hour}, {"− 10 minutes", -10 * time.Minute},
	{"+ 10 minutes", 10 * time.Minute}, {"+ 1 hour", time.Hour},
}

// orgEventsView is the page of the events of an organization's hubs, or of one of them.
type orgEventsView struct {
	Layout
	orgEventsQuery
	// Of is the head of the page of a hub; nil for the organization.
	Of *hubHead
	// HubDevices are the devices of the hub to filter by.
	HubDevices []logDevice
	Kinds      []eventKind
	Sites      []domain.Site
	// Devices are names to suggest, and People who may have caused events.
	Devices, People []string
	Rows            []orgEventRow
	// SearchedTo is the time until which a search has found few events so far; zero if it has ended.
	SearchedTo time.Time
	// TypedFrom and TypedTo are the values of the time fields, in the zone Zone.
	TypedFrom, TypedTo, Zone, ZoneText string
	Periods                            []timeStep
	// Older and Export are addresses. Older is "" if there are no older events.
	Older, Export string
}

// Filtered reports whether the page leaves events out on a person's wish.
func (v orgEventsView) Filtered() bool {
	return v.orgEventsQuery != orgEventsQuery{Hub: v.Hub, Kind: v.usualKind(), Details: v.Details}
}

// orgEventRow is an event with its place.
type orgEventRow struct {
	logEntry
	place
	SiteID string
	// stored is when the event was stored, in nanoseconds since 1970.
	stored int64
}

// orgEvents shows the newest events of all hubs, or of the hub of the address, that the address
// selects, also within a period: who opened the front door this morning. The address can be shared.
func (req *request) orgEvents() error {
	search, err := req.eventSearch()
	if err != nil {
		return err
	}
	found, err := req.newestEvents(search, parseEventPlace(req.queryValue("before")))
	if err != nil {
		return err
	}
	view := orgEventsView{
		orgEventsQuery: search.query, Kinds: eventKinds, Sites: search.sites, Rows: found.Rows,
		SearchedTo: found.SearchedTo, HubDevices: search.hubDevices,
	}
	if req.hub == "" {
		view.Layout = req.layout("Events", "events")
	} else {
		head, err := req.hubHead("Event log")
		if err != nil {
			return err
		}
		view.Of, view.Layout = &head, head.Layout
	}
	view.Scripts = []string{"livesearch.js"}
	view.Devices = search.suggestions()
	if view.People, err = req.possibleCauses(); err != nil {
		return err
	}
	view.fillTimes(req.Retention)
	view.Export = view.encode()
	if found.Older != (eventPlace{}) {
		view.Older = view.encode("before", found.Older.String())
	}
	req.render(http.StatusOK, "events.html", view)
	return nil
}

// exportEvents answers with the events that the address selects as CSV, oldest first.
func (req *request) exportEvents() error {
	search, err := req.eventSearch()
	if err != nil {
		return err
	}
	search.by.limit = maxExportCommands
	name := "events"
	if req.hub != "" {
		name += "-" + string(req.hub)
	}
	file, exported := req.eventFile(name), 0
	end, err := req.scanEvents(
		search, search.begin(), req.info.At.UnixNano(), exportScan, func(row orgEventRow) (bool, error) {
			exported++
			return exported < maxExport, file.add(row.logEntry, row.place)
		},
	)
	return file.end(end.done, err)
}

// fillTimes fills the time fields and the periods to choose from.
func (v *orgEventsView) fillTimes(retention time.Duration) {
	v.Zone, v.ZoneText = zoneTexts(v.Now)
	typed := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.In(v.Now.Location()).Format(clockLayout)
	}
	v.TypedFrom, v.TypedTo = typed(v.From), typed(v.To)
	year, month, date := v.Now.Date()
	at := func(day, hour int) time.Time {
		return time.Date(year, month, date+day, hour, 0, 0, 0, v.Now.Location())
	}
	for _, period := range []struct {
		label    string
		from, to time.Time
	}{
		{"Last hour", v.Now.Add(-time.Hour).Truncate(time.Minute), time.Time{}},
		{"This morning", at(0, 5), at(0, 12)}, {"Today", at(0, 0), time.Time{}},
		{"Last night", at(-1, 20), at(0, 6)}, {"Yesterday", at(-1, 0), at(0, 0)},
	} {
		if period.from.After(v.Now) || !period.to.IsZero() && v.Now.Sub(period.to) >= retention {
			continue
		}
		q := v.orgEventsQuery
		q.From, q.To = period.from, period.to
		v.Periods = append(v.Periods, timeStep{period.label, q.encode()})
	}
	last := v.To
	if last.IsZero() {
		last = v.Now
		if len(v.Rows) > 0 {
			last = v.Rows[0].Time
		}
	}
	for _, step := range timeSteps {
		q := v.orgEventsQuery
		if q.To = last.Add(step.by); !q.To.Before(v.Now) {
			continue
		}
		if !q.From.IsZero() {
			q.From = q.From.Add(step.by)
		}
		v.Periods = append(v.Periods, timeStep{step.label, q.encode()})
	}
}

// possibleCauses returns the names of the people who may have caused an event, and what stands for
// nobody's name.
func (req *request) possibleCauses() ([]string, error) {
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return nil, err
	}
	names := []string{byDevice, byBuilding}
	for _, member := range org.Members {
		names = append(names, member.DisplayName())
	}
	slices.SortFunc(names[2:], compareNatural)
	return names, nil
}

// suggestions returns names of devices at the chosen site.
func (s *eventSearch) suggestions() (names []string) {
	for _, d := range s.found {
		owner, _ := s.by.req.Hubs.Hub(d.HubID)
		if s.query.Site == "" || owner.SiteID == s.query.Site {
			names = append(names, d.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(compareNatural(a, b), cmp.Compare(a, b))
	})
	names = slices.Compact(names)
	return names[:min(len(names), suggestedDevices)]
}
