package portal

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// timeStep is one step through the time of a log.
type timeStep struct {
	Label, Address string
}

type hubLogView struct {
	hubHead
	Page live.LogPage
	// Names are those that devices were given in the cloud: the log can be read while the hub is
	// away.
	Names map[int64]string
	// At is the time that was asked for, as its field has it, Device the device; both empty for
	// none.
	At, Device string
	Steps      []timeStep
	// Later leads to what follows; empty when there is nothing yet.
	Later string
}

// Called gives what a device is called as far as that is known without its hub.
func (v hubLogView) Called(device *int64) string {
	if name := v.Names[*device]; name != "" {
		return name
	}
	return "device " + strconv.FormatInt(*device, 10)
}

// timeSteps are how far one goes at a time.
var timeSteps = []struct {
	label string
	by    time.Duration
}{
	{"− 1 hour", -time.Hour}, {"− 10 minutes", -10 * time.Minute}, {"− 1 minute", -time.Minute},
	{"+ 1 minute", time.Minute}, {"+ 10 minutes", 10 * time.Minute}, {"+ 1 hour", time.Hour},
}

// clockLayout is what a field for date and time sends: no seconds when they are nought.
const clockLayout = "2006-01-02T15:04"

// hubLog shows a part of a hub's log and the steps to others. Times are UTC, as in all of the
// service: its visitors are in many places, and so are its hubs.
func (req *request) hubLog(hub domain.HubID) error {
	query := req.http.URL.Query()
	want := live.LogRequest{After: query.Get("after")}
	at, given := parseClock(query.Get("at"))
	if !given {
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
	if view.Names, err = req.portal.Live.LabelNames(req.http.Context(), req.member.OrgID, hub); err != nil {
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

func parseClock(typed string) (time.Time, bool) {
	for _, layout := range []string{clockLayout, clockLayout + ":05", time.RFC3339} {
		if at, err := time.Parse(layout, typed); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
