package portal

import (
	"fmt"
	"net/http"
	"time"

	"hubcloud/domain"
)

// command sends a command to a channel. The result appears on the page by the stream or a reload.
func (req *request) command() error {
	command, err := readCommand(req.org, req.hub, req.device, req.http.PostForm)
	if err == nil {
		_, err = req.Commands.Send(req.ctx, req.origin(), command)
	}
	show := req.showHub
	if req.formValue("from") == "device" {
		show = req.showDevice
	}
	return req.finishOn(show, err, req.cardPage(), "command-sent", rejectedForm{})
}

// cardPage returns the address of the page that the device's form was on: the device's or its
// hub's.
func (req *request) cardPage() string {
	if req.formValue("from") == "device" {
		return deviceAddress(req.hub, req.device)
	}
	return hubAddress(req.hub)
}

// labelDevice sets the name and room of a device. An empty field clears.
func (req *request) labelDevice() error {
	err := req.saveLabel()
	req.offerUndo(err, req.cardPage(), nil, req.hub)
	return req.finishOn(
		req.showDevice, err, req.cardPage(), "device-labeled",
		rejectedForm{Form: "label", Name: req.formValue("name"), Place: req.formValue("room")},
	)
}

// saveLabel sets the label that the form has. It asks the hub for the device first: a label for a
// device that does not exist would apply to the next device with its number.
func (req *request) saveLabel() (err error) {
	change := domain.LabelDevice{
		OrgID: req.org, HubID: req.hub, DeviceID: req.device, SetName: true, SetRoom: true,
	}
	if change.Name, err = req.optionalName("name"); err != nil {
		return err
	}
	if change.Room, err = req.optionalName("room"); err != nil {
		return err
	}
	reported, err := req.Devices.Get(req.ctx, req.hub, req.device)
	if err != nil {
		return err
	}
	if change.Name != nil && *change.Name == reported.Name {
		change.Name = nil // the form shows the reported name: unchanged, it keeps following the hub
	}
	_, err = req.Labels.LabelDevice(req.ctx, req.origin(), change)
	return err
}

// optionalName returns the name in a field of the form; nil if the field is empty.
func (req *request) optionalName(field string) (*string, error) {
	typed := req.formValue(field)
	if typed == "" {
		return nil, nil
	}
	name, err := domain.CleanName(field, typed)
	return &name, err
}

// updateHub sets the name and site of a hub. An empty name clears.
func (req *request) updateHub() error {
	site := req.formValue("site")
	change := domain.UpdateHub{OrgID: req.org, HubID: req.hub, SetName: true, SiteID: &site}
	var err error
	if change.Name, err = req.optionalName("name"); err == nil {
		_, err = req.Directory.UpdateHub(req.ctx, req.origin(), change)
	}
	req.offerUndo(err, hubAddress(req.hub), nil, req.hub)
	return req.finishOnHub(
		err, "hub-placed", rejectedForm{Form: "place", Name: req.formValue("name"), Place: site},
	)
}

// forgetDevice removes a device that the hub can no longer reach.
func (req *request) forgetDevice() error {
	err := req.Devices.Forget(req.ctx, req.hub, req.device)
	return req.finishOn(
		req.showDevice, err, hubAddress(req.hub), "device-forgotten", rejectedForm{Form: "forget"},
	)
}

// openPairing lets one device join, and redirects to the page that counts down.
func (req *request) openPairing() error {
	var code *string
	var err error
	if given := req.formValue("setup_code"); given != "" {
		given, err = domain.CleanSetupCode("setup_code", given)
		code = &given
	}
	var window domain.Window
	if err == nil {
		window, err = req.Devices.OpenPairing(req.ctx, req.hub, code)
	}
	return req.finishOn(
		req.showHub, err, req.windowAddress("pairing", window), "",
		rejectedForm{Form: "pairing", Name: req.formValue("setup_code")},
	)
}

// openRemoval lets one device leave, and redirects to the page that counts down.
func (req *request) openRemoval() error {
	window, err := req.Devices.OpenRemoval(req.ctx, req.hub)
	return req.finishOn(
		req.showHub, err, req.windowAddress("removal", window), "", rejectedForm{Form: "removal"},
	)
}

// windowAddress returns the address of the hub's page that counts down to the end of a window.
func (req *request) windowAddress(name string, window domain.Window) string {
	until := req.Now().Add(time.Duration(window.ExpiresIn) * time.Second)
	return fmt.Sprintf("%s?%s=%d", hubAddress(req.hub), name, until.Unix())
}

func (req *request) closePairing() error {
	err := req.Devices.ClosePairing(req.ctx, req.hub)
	return req.finishOnHub(err, "window-closed", rejectedForm{})
}

func (req *request) closeRemoval() error {
	err := req.Devices.CloseRemoval(req.ctx, req.hub)
	return req.finishOnHub(err, "window-closed", rejectedForm{})
}

// confirmReset asks whether to reset a hub's link.
func (req *request) confirmReset() error { return req.confirm("Reset the link", "reset-link.html") }

func (req *request) resetLink() error {
	err := req.Directory.ResetLink(req.ctx, req.origin(), req.org, req.hub)
	return req.finishOnHub(err, "link-reset", rejectedForm{})
}

// confirmHubRemoval asks whether to remove a hub from the organization.
func (req *request) confirmHubRemoval() error {
	return req.confirm("Remove the hub", "remove-hub.html")
}

// confirm shows a page that asks whether to do something with a hub.
func (req *request) confirm(topic, page string) error {
	head, err := req.hubHead(topic)
	if err == nil {
		req.render(http.StatusOK, page, head)
	}
	return err
}

// removeHub removes a hub from the organization.
func (req *request) removeHub() error {
	err := req.Directory.RemoveHub(req.ctx, req.origin(), req.org, req.hub)
	return req.finishOn(req.showHub, err, "", "hub-removed", rejectedForm{})
}

// rejectedForm is a rejected form on a page about a hub; zero if there is none.
type rejectedForm struct {
	// Form is pairing, removal, place, label or forget. It is "" if the page has no place for
	// Problem beside the form; the page then shows Problem at the top.
	Form, Problem string
	// Name and Place are what was typed: the name or setup code, and the site or room.
	Name, Place string
}

// finishOn answers the form of an action on a hub or a device. It shows a rejected form on the page
// of the hub or the device, or on a page of its own if that page cannot be shown either: the device's
// cannot be shown without the hub.
func (req *request) finishOn(
	show func(status int, rejected rejectedForm) error, err error, page, notice string,
	rejected rejectedForm,
) error {
	if rejected.Problem = req.problemText(err); rejected.Problem == "" ||
		show(statusOf(domain.CodeOf(err)), rejected) != nil {
		return req.finishAction(err, page, notice)
	}
	return nil
}

// finishOnHub is finishOn for a form of the hub's page, which it returns to.
func (req *request) finishOnHub(err error, notice string, rejected rejectedForm) error {
	return req.finishOn(req.showHub, err, hubAddress(req.hub), notice, rejected)
}

// problemText returns the text of a rejection for the page of its form; "" if the error is not a
// rejection, or if a script asked.
func (req *request) problemText(err error) string {
	problem, ok := rejectionText(err)
	if !ok || req.fromScript() {
		return ""
	}
	return problem
}

// finishAction answers an action: with its error, with 204 if a script asked, and otherwise with a
// redirect to a page that shows the notice.
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
