package portal

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// timeStep is a link to another time of a log.
type timeStep struct {
	Label, Address string
}

// logDevice is a device to filter by.
type logDevice struct {
	ID   int64
	Name string
}

// logQuery is the part of a log's address that selects its events.
type logQuery struct {
	// At is the time that the events are before; zero for now.
	At time.Time
	// Device is the number of the device, "" for all.
	Device string
	// Type is what the events' types begin with, Severity the name of the least severity.
	Type, Severity string
	// Details is "1" if the page shows machine types and raw fields.
	Details string
}

// encode returns the query of an address with these filters.
func (q logQuery) encode(more ...string) string {
	values := url.Values{}
	for name, value := range map[string]string{
		"device": q.Device, "type": q.Type, "severity": q.Severity, "details": q.Details,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if !q.At.IsZero() {
		values.Set("at", q.At.UTC().Format(time.RFC3339))
	}
	for i := 0; i+1 < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return "?" + values.Encode()
}

type hubLogView struct {
	hubHead
	logQuery
	Page logPart
	// Devices are the devices to filter by, in the order of their names.
	Devices []logDevice
	infos   map[int64]deviceInfo
	// Typed is the value of the time field, in the zone Zone.
	Typed, Zone string
	// ZoneText names the zone with its abbreviation.
	ZoneText string
	Steps    []timeStep
	// Newest, Older and Export are addresses. Older is "" if the log has no older events.
	Newest, Older, Export string
}

// Called returns the name of a device.
func (v hubLogView) Called(device *int64) string {
	return cmp.Or(v.infos[*device].Name, deviceNumber(*device))
}

// Types returns the types to filter by, with their labels.
func (v hubLogView) Types() []filterChoice { return eventTypes }

// Severities returns the severities to filter by, with their labels.
func (v hubLogView) Severities() []filterChoice { return eventSeverities }

// Filtered reports whether the page leaves events out.
func (v hubLogView) Filtered() bool { return v.Device != "" || v.Type != "" || v.Severity != "" }

func deviceNumber(id int64) string {
	return "Device " + strconv.FormatInt(id, 10)
}

// timeSteps are the steps that the page offers.
var timeSteps = []struct {
	label string
	by    time.Duration
}{
	{"− 1 hour", -time.Hour}, {"− 10 minutes", -10 * time.Minute},
	{"+ 10 minutes", 10 * time.Minute}, {"+ 1 hour", time.Hour},
}

// logQuery reads the filters from the page's address.
func (req *request) logQuery() (logQuery, logFilter) {
	query := req.http.URL.Query()
	var q logQuery
	q.At, _ = parseClock(query.Get("at"), req.typedZone()) // zero, the newest events, without a valid time
	var filter logFilter
	if id, err := strconv.ParseInt(query.Get("device"), 10, 64); err == nil {
		filter.Device, q.Device = &id, strconv.FormatInt(id, 10)
	}
	for _, choice := range eventTypes {
		if choice.Value == query.Get("type") {
			filter.Type, q.Type = choice.Value, choice.Value
		}
	}
	if severity, ok := parseSeverity(query.Get("severity")); ok &&
		severity != severityRoutine {
		filter.Severity, q.Severity = severity, severity.String()
	}
	if query.Get("details") == "1" {
		q.Details = "1"
	}
	return q, filter
}

// hubLog shows a page of a hub's event log, newest event first.
func (req *request) hubLog() error {
	q, filter := req.logQuery()
	view := hubLogView{logQuery: q}
	infos, err := req.deviceInfos(req.ctx, req.org, req.hub)
	if err != nil {
		return err
	}
	view.infos = infos
	view.Page, err = req.readLog(req.ctx, req.hub, logRequest{
		Before: req.http.URL.Query().Get("before"), At: q.At, Filter: filter, Devices: infos,
	})
	if err != nil {
		return err
	}
	if err := req.commanders(maxCommands).nameAll(view.Page.Entries); err != nil {
		return err
	}
	if view.hubHead, err = req.hubHead("Event log"); err != nil {
		return err
	}
	view.fillDevices(filter.Device)
	view.fillLinks()
	req.render(http.StatusOK, "log.html", view)
	return nil
}

// fillDevices fills the list of devices to filter by. It has the chosen device, known or not.
func (v *hubLogView) fillDevices(chosen *int64) {
	for id := range v.infos {
		v.Devices = append(v.Devices, logDevice{id, v.Called(&id)})
	}
	if _, known := v.infosOf(chosen); chosen != nil && !known {
		v.Devices = append(v.Devices, logDevice{*chosen, deviceNumber(*chosen)})
	}
	slices.SortFunc(v.Devices, func(a, b logDevice) int {
		return cmp.Or(compareNatural(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

func (v *hubLogView) infosOf(device *int64) (deviceInfo, bool) {
	if device == nil {
		return deviceInfo{}, false
	}
	info, known := v.infos[*device]
	return info, known
}

// fillLinks fills the time field and the links to other parts of the log.
func (v *hubLogView) fillLinks() {
	zone := v.Now.Location()
	at := v.At
	if at.IsZero() {
		at = v.Now
		if n := len(v.Page.Entries); n > 0 {
			at = v.Page.Entries[0].Time
		}
	} else {
		v.Typed = at.In(zone).Format(clockLayout + ":05")
	}
	v.Zone, v.ZoneText = zoneTexts(v.Now)
	for _, step := range timeSteps {
		q := v.logQuery
		if q.At = at.Add(step.by); q.At.Before(v.Now) {
			v.Steps = append(v.Steps, timeStep{step.label, q.encode()})
		}
	}
	newest := v.logQuery
	newest.At = time.Time{}
	v.Newest = newest.encode()
	v.Export = v.encode()
	if v.Page.Older != "" {
		v.Older = v.encode("before", v.Page.Older)
	}
}
