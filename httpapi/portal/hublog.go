package portal

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// timeStep is a link to another time of a log.
type timeStep struct {
	Label, Address string
}

type hubLogView struct {
	hubHead
	Page live.LogPage
	// Names are the names of devices that were set in the cloud. Names that only the hub knows are
	// missing, so that the log can be read while the hub is offline.
	Names map[int64]string
	// At is the start time and Device the device to filter by, as typed in the form; Device is ""
	// for all.
	At, Device string
	Steps      []timeStep
	// Later is the address of the next page; "" if there is none yet.
	Later string
}

// Called returns the name of a device, or its number if the cloud has no name.
func (v hubLogView) Called(device *int64) string {
	if name := v.Names[*device]; name != "" {
		return name
	}
	return "device " + strconv.FormatInt(*device, 10)
}

// timeSteps are the steps that the page offers.
var timeSteps = []struct {
	label string
	by    time.Duration
}{
	{"− 1 hour", -time.Hour}, {"− 10 minutes", -10 * time.Minute}, {"− 1 minute", -time.Minute},
	{"+ 1 minute", time.Minute}, {"+ 10 minutes", 10 * time.Minute}, {"+ 1 hour", time.Hour},
}

// clockLayout is the format of a datetime-local field, which omits zero seconds.
const clockLayout = "2006-01-02T15:04"

// hubLog shows a page of a hub's event log. Times are UTC: the hub and the reader may be in
// different time zones.
func (req *request) hubLog(hub domain.HubID) error {
	query := req.http.URL.Query()
	want := live.LogRequest{After: query.Get("after")}
	at, ok := parseClock(query.Get("at"))
	if !ok {
		at = req.info.At.Add(-10 * time.Minute)
	}
	want.At = at
	view := hubLogView{At: at.UTC().Format(clockLayout + ":05")}
	if device, err := strconv.ParseInt(query.Get("device"), 10, 64); err == nil {
		want.Device, view.Device = &device, strconv.FormatInt(device, 10)
	}
	var err error
	if view.Page, err = req.portal.Live.ReadLog(req.http.Context(), hub, want); err != nil {
		return err
	}
	if view.hubHead, err = req.hubHead(hub, "Event log"); err != nil {
		return err
	}
	ctx := req.http.Context()
	if view.Names, err = req.portal.Live.LabelNames(ctx, req.member.OrgID, hub); err != nil {
		return err
	}
	address := func(name, value string) string {
		q := url.Values{name: {value}}
		if view.Device != "" {
			q.Set("device", view.Device)
		}
		return "?" + q.Encode()
	}
	if want.After != "" && len(view.Page.Entries) > 0 {
		at = view.Page.Entries[0].Time
	}
	for _, step := range timeSteps {
		view.Steps = append(
			view.Steps,
			timeStep{step.label, address("at", at.Add(step.by).UTC().Format(clockLayout+":05"))},
		)
	}
	if view.Page.Next != "" {
		view.Later = address("after", view.Page.Next)
	}
	req.render(http.StatusOK, "log.html", view)
	return nil
}

// parseClock parses a time of a datetime-local field or in RFC 3339, and reports whether it is one.
func parseClock(typed string) (time.Time, bool) {
	for _, layout := range []string{clockLayout, clockLayout + ":05", time.RFC3339} {
		if at, err := time.Parse(layout, typed); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
