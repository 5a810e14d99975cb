package portal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// maxTargets is how many channels one action sets.
const maxTargets = 500

// groupActionView is the page of an action on many devices, of a site or chosen from a list: what
// will be done, and then the result for each device.
type groupActionView struct {
	siteHead
	Action groupAction
	// Base is the page that the action belongs to: a site's, or the list of devices. Address is the
	// address of the form.
	Base, Address string
	// Devices are the devices that were chosen from the list, as values of the form.
	Devices []string
	// Value is what was typed, with Problem if it was rejected.
	Value, Problem string
	// Hubs are the choices of a hub, and Rooms the choices of a room. Hub and Room are the chosen
	// ones.
	Hubs  []hubState
	Rooms []string
	Hub   domain.HubID
	Room  string
	// Targets are the channels that the action sets, by hub and device.
	Targets []targetRow
	// Unreachable are the hubs that did not return their devices.
	Unreachable []unreachableHub
	// Sent reports whether Targets have results.
	Sent bool
	// Query is the filter of the targets as a query.
	Query string
	// Once identifies the action: submitted twice, it sends no command twice.
	Once string
}

// targetRow is a channel in the list of an action.
type targetRow struct {
	target
	HubName string
	// Chosen reports whether the action sets the channel.
	Chosen bool
	// Result is the text of the result, and Mark its style.
	Result, Mark string
}

// Field returns the channel as a value of the form.
func (t targetRow) Field() string {
	return fmt.Sprintf("%s/%d/%d", t.Hub, t.DeviceID, t.Endpoint)
}

// unreachableHub is a hub that did not return its devices.
type unreachableHub struct {
	hubState
	Why string
	// Targets are the hub's channels that the action would set, as they reported last.
	Targets []targetRow
}

// Summary returns how many commands succeeded. Those without a report are counted as neither done
// nor failed.
func (v groupActionView) Summary() string {
	good, bad, open := v.countResults("good"), v.countResults("bad"), v.countResults("wait")
	if open > 0 {
		return fmt.Sprintf(
			"%d done, %d failed, %d not confirmed of %d.", good, bad, open, len(v.Targets),
		)
	}
	return fmt.Sprintf("%d done, %d failed of %d.", good, bad, len(v.Targets))
}

func (v groupActionView) countResults(mark string) (n int) {
	for _, target := range v.Targets {
		if target.Mark == mark {
			n++
		}
	}
	return n
}

// groupAction returns the action of the path.
func (req *request) groupAction() (groupAction, error) {
	i := slices.IndexFunc(groupActions, func(a groupAction) bool {
		return a.Name == cmp.Or(req.http.PathValue("action"), req.formValue("action"))
	})
	if i < 0 {
		return groupAction{}, errPageNotFound
	}
	return groupActions[i], nil
}

// confirmGroupAction lists what an action will do.
func (req *request) confirmGroupAction() error {
	return req.showGroupAction(http.StatusOK, groupActionView{})
}

func (req *request) showGroupAction(status int, view groupActionView) error {
	if err := req.loadTargets(&view); err != nil {
		return err
	}
	for i := range view.Targets {
		view.Targets[i].Chosen = true
	}
	return req.renderAction(status, view)
}

func (req *request) renderAction(status int, view groupActionView) error {
	title, section := view.Action.Title, "devices"
	if view.Site.ID != "" {
		title, section = title+" · "+view.Site.Name, "sites"
	}
	view.Layout = req.layout(title, section)
	view.Inner = true
	req.render(status, "group-action.html", view)
	return nil
}

// actOnDevices lists what an action will do with the devices that were chosen from the list, and
// then does it.
func (req *request) actOnDevices() error {
	if _, err := req.groupAction(); err != nil {
		return req.showDevices(http.StatusBadRequest, "Choose what to do with the devices.")
	}
	if len(req.http.PostForm["device"]) == 0 {
		return req.showDevices(http.StatusBadRequest, "Choose at least one device.")
	}
	if req.formValue("once") == "" {
		return req.confirmGroupAction()
	}
	return req.runGroupAction()
}

// loadTargets sets the site, the action and its targets. The query parameters hub and room restrict
// the targets.
func (req *request) loadTargets(view *groupActionView) error {
	var err error
	if view.Action, err = req.groupAction(); err != nil {
		return err
	}
	if view.Devices = req.http.PostForm["device"]; req.http.PathValue("site") != "" {
		view.Site, view.Hubs, err = req.siteHubs()
		view.Base = "sites/" + view.Site.ID
		view.Address = view.Base + "/actions/" + view.Action.Name
	} else {
		view.Base, view.Address = "devices", "devices/action"
		view.Hubs, err = req.hubsOf(view.Devices)
	}
	if err != nil {
		return err
	}
	view.Hub, view.Room = domain.HubID(req.queryValue("hub")), req.queryValue("room")
	view.Query = req.rawQuery()
	names := map[domain.HubID]string{}
	var asked []domain.HubID
	for _, hub := range view.Hubs {
		names[hub.ID] = cmp.Or(hub.Name, string(hub.ID))
		if view.Hub == "" || view.Hub == hub.ID {
			asked = append(asked, hub.ID)
		}
	}
	found, err := req.findTargets(req.ctx, req.org, asked, view.Action.Key, !view.Sent)
	if err != nil {
		return err
	}
	view.Targets = view.rows(found.Targets, names)
	for _, hub := range view.Hubs {
		if err := found.Failed[hub.ID]; err != nil {
			last, err2 := req.lastTargets(req.ctx, req.org, hub.ID, view.Action.Key)
			if err2 != nil {
				return err2
			}
			view.Unreachable = append(view.Unreachable, unreachableHub{
				hub, groupResults[groupResult(err)].Text, view.rows(last, names),
			})
		}
	}
	slices.SortFunc(view.Rooms, compareNatural)
	return nil
}

// rows returns those of the targets that the page is about, in their order, and notes their rooms.
func (v *groupActionView) rows(
	targets []target, hubNames map[domain.HubID]string,
) (rows []targetRow) {
	for _, target := range targets {
		device := deviceField(target.Hub, target.DeviceID)
		if v.Site.ID == "" && !slices.Contains(v.Devices, device) {
			continue
		}
		if !slices.Contains(v.Rooms, target.Room) && target.Room != "" {
			v.Rooms = append(v.Rooms, target.Room)
		}
		if v.Room == "" || v.Room == target.Room {
			rows = append(rows, targetRow{target: target, HubName: hubNames[target.Hub]})
		}
	}
	slices.SortStableFunc(rows, func(a, b targetRow) int {
		return cmp.Or(
			compareNatural(a.HubName, b.HubName), cmp.Compare(a.Hub, b.Hub),
			compareNatural(a.Room, b.Room), compareNatural(a.Name, b.Name),
		)
	})
	return rows
}

// runGroupAction sends the commands of an action, and shows a result for each.
func (req *request) runGroupAction() error {
	view := groupActionView{Value: req.formValue("value"), Once: req.formValue("once"), Sent: true}
	if view.Once == "" {
		return req.rejectForgedForm()
	}
	if err := req.loadTargets(&view); err != nil {
		return err
	}
	chosen := req.http.PostForm["target"]
	value, err := view.Action.value(view.Value)
	switch {
	case err != nil:
		view.Problem, _ = rejectionText(err)
	case len(chosen) == 0:
		view.Problem = "Choose at least one device."
	case len(chosen) > maxTargets:
		view.Problem = fmt.Sprintf("Choose at most %d devices at once.", maxTargets)
	}
	if view.Problem != "" {
		return req.showGroupAction(
			http.StatusBadRequest, groupActionView{Value: view.Value, Problem: view.Problem},
		)
	}
	view.Targets = slices.DeleteFunc(view.Targets, func(t targetRow) bool {
		return !slices.Contains(chosen, t.Field())
	})
	sends := make([]groupSend, len(view.Targets))
	for i, target := range view.Targets {
		sends[i] = groupSend{Target: target.target, Command: domain.Command{
			OrgID: req.org, HubID: target.Hub, DeviceID: target.DeviceID,
			Key: view.Action.Key, Endpoint: target.Endpoint, Value: value,
			IdempotencyKey: "portal-" + req.member.MemberID + "-" + view.Once + "-" + target.Field(),
		}}
	}
	results := req.sendAll(req.ctx, req.Commands, req.origin(), sends)
	for i, result := range results {
		view.Targets[i].Result, view.Targets[i].Mark = groupResultText(result)
	}
	view.addMissing(chosen)
	slices.SortStableFunc(view.Targets, func(a, b targetRow) int { // what is not done comes first
		return cmp.Compare(resultOrder[a.Mark], resultOrder[b.Mark])
	})
	return req.renderAction(http.StatusOK, view)
}

// resultOrder is the order of the styles of results.
var resultOrder = map[string]int{"bad": 0, "wait": 1, "good": 2}

// addMissing adds results for the channels of hubs that did not answer, since "Lock all" must not hide
// a door that it cannot lock, and for chosen channels that are not known any more.
func (v *groupActionView) addMissing(chosen []string) {
	for _, hub := range v.Unreachable {
		for _, row := range hub.Targets {
			row.Result, row.Mark = hub.Why, "bad"
			v.Targets = append(v.Targets, row)
		}
	}
	v.Unreachable = slices.DeleteFunc(v.Unreachable, func(h unreachableHub) bool {
		return len(h.Targets) > 0
	})
	for _, field := range chosen {
		if slices.ContainsFunc(v.Targets, func(t targetRow) bool { return t.Field() == field }) {
			continue
		}
		parts := strings.Split(field, "/")
		if len(parts) != 3 {
			continue
		}
		i := slices.IndexFunc(v.Hubs, func(h hubState) bool { return string(h.ID) == parts[0] })
		device, err := strconv.ParseInt(parts[1], 10, 64)
		if i < 0 || err != nil {
			continue
		}
		result := groupResults["gone"]
		v.Targets = append(v.Targets, targetRow{
			target: target{
				Hub: v.Hubs[i].ID, DeviceID: device, Name: fmt.Sprint("Device ", device),
			},
			HubName: cmp.Or(v.Hubs[i].Name, parts[0]), Result: result.Text, Mark: result.Mark,
		})
	}
}

// value returns the value that the action sets. The error is invalid_request.
func (a groupAction) value(typed string) (json.RawMessage, error) {
	value := json.RawMessage(a.Value)
	if a.Typed() {
		number, err := strconv.ParseFloat(strings.Replace(typed, ",", ".", 1), 64)
		if err != nil {
			return nil, domain.Errorf(domain.CodeInvalidRequest, "value: must be a number")
		}
		if value, err = json.Marshal(number); err != nil {
			return nil, domain.Errorf(domain.CodeInvalidRequest, "value: must be a number")
		}
	}
	return domain.CheckCommandValue(a.Key, value)
}

// groupResultText returns the text and the style of a command's result.
func groupResultText(result sendResult) (shown, mark string) {
	name := string(result.Outcome)
	if result.Err != nil {
		name = groupResult(result.Err)
	}
	reason, _ := rejectionText(result.Err)
	texts := groupResults[name]
	return fill(texts.Text, "value", result.Value, "reason", reason), texts.Mark
}

// groupResult returns the name of the result of a command that was not accepted.
func groupResult(err error) string {
	if errors.Is(err, domain.ErrCommandSkipped) {
		return "skipped"
	}
	switch domain.CodeOf(err) {
	case domain.CodeHubOffline:
		return "offline"
	case domain.CodeHubUnavailable:
		return "unavailable"
	case domain.CodeHubTimeout, domain.CodeHubError, domain.CodeInternal:
		return "no answer"
	case domain.CodeNotFound:
		return "gone"
	}
	return "rejected"
}

// groupResults are the results of one command of an action on many devices, and their styles.
var groupResults = map[string]struct{ Text, Mark string }{
	"done":        {"Done", "good"},
	"pending":     {"Not confirmed: no report yet; before the command: {value}", "wait"},
	"not done":    {"Not done: the device reports {value}", "bad"},
	"jammed":      {"Jammed: the device reports {value}", "bad"},
	"failed":      {"The hub gave up. The device may be out of reach.", "bad"},
	"rejected":    {"Rejected: {reason}", "bad"},
	"offline":     {"Not sent: the hub is offline", "bad"},
	"unavailable": {"Not sent: the hub is not ready", "bad"},
	"no answer":   {"No answer from the hub. It may still have acted.", "bad"},
	"skipped":     {"Not sent: the hub does not answer", "bad"},
	"gone":        {"Not sent: there is no such device any more", "bad"},
}
