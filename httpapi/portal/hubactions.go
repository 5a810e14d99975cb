package portal

import (
	"fmt"
	"net/http"
	"time"

	"hubcloud/domain"
)

// command sends a command to a channel. The result appears on the page by the stream or a reload.
func (req *request) command(hub domain.HubID) error {
	device, err := req.deviceID()
	if err != nil {
		return err
	}
	command, err := readCommand(req.member.OrgID, hub, device, req.http.PostForm)
	if err == nil {
		_, err = req.portal.Commands.Send(req.http.Context(), req.origin(), command)
	}
	if req.formValue("from") == "device" {
		return req.finishDeviceAction(
			err, hub, device, req.cardPage(hub, device), "command-sent", rejectedForm{},
		)
	}
	return req.finishHubAction(err, hub, req.cardPage(hub, device), "command-sent", rejectedForm{})
}

// cardPage returns the address of the page that the device's form was on: the device's or its
// hub's.
func (req *request) cardPage(hub domain.HubID, device int64) string {
	if req.formValue("from") == "device" {
		return deviceAddress(hub, device)
	}
	return hubAddress(hub)
}

// labelDevice sets the name and room of a device. An empty field clears.
func (req *request) labelDevice(hub domain.HubID) error {
	device, err := req.deviceID()
	if err != nil {
		return err
	}
	return req.finishDeviceAction(
		req.saveLabel(hub, device), hub, device, req.cardPage(hub, device), "device-labeled",
		rejectedForm{Form: "label", Name: req.formValue("name"), Place: req.formValue("room")},
	)
}

// saveLabel sets the label that the form has. It asks the hub for the device first: a label for a
// device that does not exist would apply to the next device with its number.
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
		change.Name = nil // the form shows the reported name: unchanged, it keeps following the hub
	}
	_, err = req.portal.Labels.LabelDevice(req.http.Context(), req.origin(), change)
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

// forgetDevice removes a device that the hub can no longer reach.
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

// openPairing lets one device join, and redirects to the page that counts down.
func (req *request) openPairing(hub domain.HubID) error {
	var code *string
	var err error
	if given := req.formValue("setup_code"); given != "" {
		given, err = domain.CleanSetupCode("setup_code", given)
		code = &given
	}
	var window domain.Window
	if err == nil {
		window, err = req.portal.Devices.OpenPairing(req.http.Context(), hub, code)
	}
	return req.finishHubAction(
		err, hub, req.windowAddress(hub, "pairing", window), "",
		rejectedForm{Form: "pairing", Name: req.formValue("setup_code")},
	)
}

// openRemoval lets one device leave, and redirects to the page that counts down.
func (req *request) openRemoval(hub domain.HubID) error {
	window, err := req.portal.Devices.OpenRemoval(req.http.Context(), hub)
	return req.finishHubAction(
		err, hub, req.windowAddress(hub, "removal", window), "", rejectedForm{Form: "removal"},
	)
}

// windowAddress returns the address of the hub's page that counts down to the end of a window.
func (req *request) windowAddress(hub domain.HubID, name string, window domain.Window) string {
	until := req.portal.Now().Add(time.Duration(window.ExpiresIn) * time.Second)
	return fmt.Sprintf("%s?%s=%d", hubAddress(hub), name, until.Unix())
}

func (req *request) closePairing(hub domain.HubID) error {
	return req.finishHubAction(
		req.portal.Devices.ClosePairing(req.http.Context(), hub), hub, hubAddress(hub),
		"window-closed", rejectedForm{},
	)
}

func (req *request) closeRemoval(hub domain.HubID) error {
	return req.finishHubAction(
		req.portal.Devices.CloseRemoval(req.http.Context(), hub), hub, hubAddress(hub),
		"window-closed", rejectedForm{},
	)
}

// confirmReset asks whether to reset a hub's link.
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
		hub, hubAddress(hub), "link-reset", rejectedForm{},
	)
}

// confirmHubRemoval asks whether to remove a hub from the organization.
func (req *request) confirmHubRemoval(hub domain.HubID) error {
	head, err := req.hubHead(hub, "Remove the hub")
	if err != nil {
		return err
	}
	req.render(http.StatusOK, "remove-hub.html", head)
	return nil
}

// removeHub removes a hub from the organization.
func (req *request) removeHub(hub domain.HubID) error {
	return req.finishHubAction(
		req.portal.Directory.RemoveHub(req.http.Context(), req.origin(), req.member.OrgID, hub),
		hub, "", "hub-removed", rejectedForm{},
	)
}

// rejectedForm is a rejected form on a page about a hub; zero if there is none.
type rejectedForm struct {
	// Form is pairing, removal, place, label or forget. It is "" if the page has no place for
	// Problem beside the form; the page then shows Problem at the top.
	Form, Problem string
	// Name and Place are what was typed: the name or setup code, and the site or room.
	Name, Place string
}

// finishHubAction answers the form of an action on a hub. It shows a rejected form on the hub's
// page, or on a page of its own if the hub's page cannot be shown either.
func (req *request) finishHubAction(
	err error, hub domain.HubID, page, notice string, rejected rejectedForm,
) error {
	if rejected.Problem = req.problemText(err); rejected.Problem == "" ||
		req.showHub(statusOf(domain.CodeOf(err)), hub, rejected) != nil {
		return req.finishAction(err, page, notice)
	}
	return nil
}

// finishDeviceAction is finishHubAction for the page of a device, which cannot be shown without the
// hub.
func (req *request) finishDeviceAction(
	err error, hub domain.HubID, device int64, page, notice string, rejected rejectedForm,
) error {
	if rejected.Problem = req.problemText(err); rejected.Problem == "" ||
		req.showDevice(statusOf(domain.CodeOf(err)), hub, device, rejected) != nil {
		return req.finishAction(err, page, notice)
	}
	return nil
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
