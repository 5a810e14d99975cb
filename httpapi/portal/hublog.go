package portal

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// logStep is one step through the time of a log.
type logStep struct {
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
	Steps      []logStep
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

// logSteps are how far one goes at a time.
var logSteps = []struct {
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
func (v *visit) hubLog(hub domain.HubID) error {
	query := v.r.URL.Query()
	want := live.LogRequest{After: query.Get("after")}
	at, given := readClock(query.Get("at"))
	if !given {
		at = v.caller.At.Add(-10 * time.Minute)
	}
	want.At = at
	view := hubLogView{At: at.UTC().Format(clockLayout + ":05")}
	if device, err := strconv.ParseInt(query.Get("device"), 10, 64); err == nil {
		want.Device, view.Device = &device, strconv.FormatInt(device, 10)
	}
	var err error
	if view.Page, err = v.p.Live.ReadLog(v.r.Context(), hub, want); err != nil {
		return err
	}
	if view.hubHead, err = v.hubHead(hub, "Event log"); err != nil {
		return err
	}
	if view.Names, err = v.p.Live.GivenNames(v.r.Context(), v.member.OrgID, hub); err != nil {
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
	for _, step := range logSteps {
		view.Steps = append(
			view.Steps,
			logStep{step.label, address("at", at.Add(step.by).UTC().Format(clockLayout+":05"))},
		)
	}
	if view.Page.Next != "" {
		view.Later = address("after", view.Page.Next)
	}
	v.render(http.StatusOK, "log.html", view)
	return nil
}

func readClock(typed string) (time.Time, bool) {
	for _, layout := range []string{clockLayout, clockLayout + ":05", time.RFC3339} {
		if at, err := time.Parse(layout, typed); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
