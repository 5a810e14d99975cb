package portal

import (
	"fmt"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// command sends a command to a channel. What became of it shows on the page: by the stream, or when
// it is loaded again.
func (req *request) command(hub domain.HubID) error {
	device, err := req.deviceID()
	if err != nil {
		return err
	}
	command, err := live.ReadCommand(req.member.OrgID, hub, device, req.http.PostForm)
	if err == nil {
		_, err = req.portal.Commands.Send(req.http.Context(), req.origin(), command)
	}
	if req.formValue("from") == "device" {
		return req.finishDeviceAction(
			err, hub, device, req.formPage(hub, device), "command-sent", rejectedForm{},
		)
	}
	return req.finishHubAction(err, hub, req.formPage(hub, device), "command-sent", rejectedForm{})
}

// back is the page that a device's form came from: the hub's, unless it says that it is the
// device's own.
func (req *request) formPage(hub domain.HubID, device int64) string {
	if req.formValue("from") == "device" {
		return deviceAddress(hub, device)
	}
	return hubAddress(hub)
}

// labelDevice names and places a device; an empty field clears.
func (req *request) labelDevice(hub domain.HubID) error {
	device, err := req.deviceID()
	if err != nil {
		return err
	}
	return req.finishDeviceAction(
		req.saveLabel(hub, device), hub, device, req.formPage(hub, device), "device-labeled",
		rejectedForm{Form: "label", Name: req.formValue("name"), Place: req.formValue("room")},
	)
}

// label does what the form of a device's name and room asks for. The hub is asked first: a name for
// a device that is not there would wait for the next one of that number.
func (req *request) saveLabel(hub domain.HubID, device int64) (err error) {
	change := domain.LabelDevice{
		OrgID:    req.member.OrgID,
		HubID:    hub,
		DeviceID: device,
		SetName:  true,
		SetRoom:  true,
	}
	if change.Name, err = req.optionalName("name"); err != nil {
		return err
	}
	if change.Room, err = req.optionalName("room"); err != nil {
		return err
	}
	reported, err := req.portal.Devices.Get(req.http.Context(), hub, device)
	if err != nil {
		return err
	}
	if change.Name != nil && *change.Name == reported.Name {
		change.Name = nil // the form shows the reported name: left as it is, it follows the hub
	}
	_, err = req.portal.Labels.LabelDevice(req.http.Context(), req.origin(), change)
	return err
}

// optionalName reads a name that may be empty: nil then.
func (req *request) optionalName(field string) (*string, error) {
	typed := req.formValue(field)
	if typed == "" {
		return nil, nil
	}
	name, err := domain.CleanName(field, typed)
	return &name, err
}

// updateHub names a hub and puts it at a site; an empty name clears.
func (req *request) updateHub(hub domain.HubID) error {
	site := req.formValue("site")
	change := domain.UpdateHub{OrgID: req.member.OrgID, HubID: hub, SetName: true, SiteID: &site}
	var err error
	if change.Name, err = req.optionalName("name"); err == nil {
		_, err = req.portal.Directory.UpdateHub(req.http.Context(), req.origin(), change)
	}
	return req.finishHubAction(
		err, hub, hubAddress(hub), "hub-placed",
		rejectedForm{Form: "place", Name: req.formValue("name"), Place: site},
	)
}

// forgetDevice makes the hub forget a device that it cannot reach any more.
func (req *request) forgetDevice(hub domain.HubID) error {
	device, err := req.deviceID()
	if err != nil {
		return err
	}
	return req.finishDeviceAction(
		req.portal.Devices.Forget(req.http.Context(), hub, device), hub, device, hubAddress(hub),
		"device-forgotten", rejectedForm{Form: "forget"},
	)
}

// openPairing lets a device join, and sends the browser to the page that counts down.
func (req *request) openPairing(hub domain.HubID) error {
	code, err := req.optionalName("setup_code")
	var window domain.Window
	if err == nil {
		window, err = req.portal.Devices.OpenPairing(req.http.Context(), hub, code)
	}
	return req.finishHubAction(
		err, hub, req.windowAddress(hub, "pairing", window), "",
		rejectedForm{Form: "pairing", Name: req.formValue("setup_code")},
	)
}

// openRemoval lets a device leave.
func (req *request) openRemoval(hub domain.HubID) error {
	window, err := req.portal.Devices.OpenRemoval(req.http.Context(), hub)
	return req.finishHubAction(
		err, hub, req.windowAddress(hub, "removal", window), "", rejectedForm{Form: "removal"},
	)
}

func (req *request) windowAddress(hub domain.HubID, name string, window domain.Window) string {
	until := req.portal.Now().Add(time.Duration(window.ExpiresIn) * time.Second)
	return fmt.Sprintf("%s?%s=%d", hubAddress(hub), name, until.Unix())
}

func (req *request) closePairing(hub domain.HubID) error {
	return req.finishHubAction(
		req.portal.Devices.ClosePairing(req.http.Context(), hub),
		hub,
		hubAddress(hub),
		"window-closed",
		rejectedForm{},
	)
}

func (req *request) closeRemoval(hub domain.HubID) error {
	return req.finishHubAction(
		req.portal.Devices.CloseRemoval(req.http.Context(), hub),
		hub,
		hubAddress(hub),
		"window-closed",
		rejectedForm{},
	)
}

// confirmReset warns of what resetting a hub's link does.
func (req *request) confirmReset(hub domain.HubID) error {
	head, err := req.hubHead(hub, "Reset the link")
	if err != nil {
		return err
	}
	req.render(http.StatusOK, "reset-link.html", head)
	return nil
}

func (req *request) resetLink(hub domain.HubID) error {
	return req.finishHubAction(
		req.portal.Directory.ResetLink(req.http.Context(), req.origin(), req.member.OrgID, hub),
		hub,
		hubAddress(hub),
		"link-reset",
		rejectedForm{},
	)
}

// rejectedForm is what a page about a hub shows of a form that was refused; the zero value is of
// none.
type rejectedForm struct {
	// Form is which: pairing, removal, place, label or forget; "" for one that has no place for it,
	// so that the page says it on top.
	Form, Problem string
	// Name and Place are what was typed: a name or a setup code; a site or a room.
	Name, Place string
}

// didAtHub answers an action. What refuses it is told on the hub's page, unless that cannot be
// shown either.
func (req *request) finishHubAction(
	err error, hub domain.HubID, page, notice string, refused rejectedForm,
) error {
	if refused.Problem = req.problemText(err); refused.Problem == "" ||
		req.showHub(statusOf(domain.CodeOf(err)), hub, refused) != nil {
		return req.finishAction(err, page, notice)
	}
	return nil
}

// didAtDevice answers an action. What refuses it is told on the device's page, unless that cannot
// be shown either: it needs the hub.
func (req *request) finishDeviceAction(
	err error, hub domain.HubID, device int64, page, notice string, refused rejectedForm,
) error {
	if refused.Problem = req.problemText(err); refused.Problem == "" ||
		req.showDevice(statusOf(domain.CodeOf(err)), hub, device, refused) != nil {
		return req.finishAction(err, page, notice)
	}
	return nil
}

// problemOf says what a page tells of a apiErr; "" when there is none, or when a script asks,
// which is told by itself.
func (req *request) problemText(err error) string {
	problem, ok := rejectionText(err)
	if !ok || req.fromScript() {
		return ""
	}
	return problem
}

// did answers an action: with a redirect to a page that says what was done, or, when a script
// asked, with nothing.
func (req *request) finishAction(err error, page, notice string) error {
	switch {
	case err != nil:
		return err
	case req.fromScript():
		req.w.WriteHeader(http.StatusNoContent)
	default:
		req.redirectInOrg(page, notice)
	}
	return nil
}
