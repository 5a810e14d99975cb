package portal

import (
	"fmt"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// command sends a command to a channel. What became of it shows on the page: by the stream, or when it is loaded again.
func (v *visit) command(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	command, err := live.ReadCommand(v.member.OrgID, hub, device, v.r.PostForm)
	if err == nil {
		_, err = v.p.Commands.Send(v.r.Context(), v.origin(), command)
	}
	return v.did(err, v.back(hub, device), "command-sent")
}

// back is the page that a device's form came from: the hub's, unless it says that it is the device's own.
func (v *visit) back(hub domain.HubID, device int64) string {
	if v.field("from") == "device" {
		return deviceAddress(hub, device)
	}
	return hubAddress(hub)
}

// labelDevice names and places a device; an empty field clears. The hub is asked first: a name for a device that is not there would wait for the
// next one of that number.
func (v *visit) labelDevice(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	change := domain.LabelDevice{OrgID: v.member.OrgID, HubID: hub, DeviceID: device, SetName: true, SetRoom: true}
	if change.Name, err = v.optionalName("name"); err != nil {
		return err
	}
	if change.Room, err = v.optionalName("room"); err != nil {
		return err
	}
	reported, err := v.p.Devices.Get(v.r.Context(), hub, device)
	if err != nil {
		return err
	}
	if change.Name != nil && *change.Name == reported.Name {
		change.Name = nil // the form shows the reported name: left as it is, it follows the hub
	}
	_, err = v.p.Labels.LabelDevice(v.r.Context(), v.origin(), change)
	return v.did(err, v.back(hub, device), "device-labeled")
}

// optionalName reads a name that may be empty: nil then.
func (v *visit) optionalName(field string) (*string, error) {
	typed := v.field(field)
	if typed == "" {
		return nil, nil
	}
	name, err := domain.CleanName(field, typed)
	return &name, err
}

// placeHub names a hub and puts it at a site; an empty name clears.
func (v *visit) placeHub(hub domain.HubID) error {
	site := v.field("site")
	change := domain.UpdateHub{OrgID: v.member.OrgID, HubID: hub, SetName: true, SiteID: &site}
	var err error
	if change.Name, err = v.optionalName("name"); err != nil {
		return err
	}
	return v.did(v.p.Directory.UpdateHub(v.r.Context(), v.origin(), change), hubAddress(hub), "hub-placed")
}

// forgetDevice makes the hub forget a device that it cannot reach any more.
func (v *visit) forgetDevice(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	return v.did(v.p.Devices.Forget(v.r.Context(), hub, device), hubAddress(hub), "device-forgotten")
}

// openPairing lets a device join, and sends the browser to the page that counts down.
func (v *visit) openPairing(hub domain.HubID) error {
	code, err := v.optionalName("setup_code")
	if err != nil {
		return err
	}
	window, err := v.p.Devices.OpenPairing(v.r.Context(), hub, code)
	return v.did(err, v.windowAddress(hub, "pairing", window), "")
}

// openRemoval lets a device leave.
func (v *visit) openRemoval(hub domain.HubID) error {
	window, err := v.p.Devices.OpenRemoval(v.r.Context(), hub)
	return v.did(err, v.windowAddress(hub, "removal", window), "")
}

func (v *visit) windowAddress(hub domain.HubID, name string, window domain.Window) string {
	until := v.p.Now().Add(time.Duration(window.ExpiresIn) * time.Second)
	return fmt.Sprintf("%s?%s=%d", hubAddress(hub), name, until.Unix())
}

func (v *visit) closePairing(hub domain.HubID) error {
	return v.did(v.p.Devices.ClosePairing(v.r.Context(), hub), hubAddress(hub), "window-closed")
}

func (v *visit) closeRemoval(hub domain.HubID) error {
	return v.did(v.p.Devices.CloseRemoval(v.r.Context(), hub), hubAddress(hub), "window-closed")
}

// confirmReset warns of what resetting a hub's link does.
func (v *visit) confirmReset(hub domain.HubID) error {
	head, err := v.hubHead(hub, "Reset the link")
	if err != nil {
		return err
	}
	v.render(http.StatusOK, "reset-link.html", head)
	return nil
}

func (v *visit) resetLink(hub domain.HubID) error {
	return v.did(v.p.Directory.ResetLink(v.r.Context(), v.origin(), v.member.OrgID, hub), hubAddress(hub), "link-reset")
}

// did answers an action: with a redirect to a page that says what was done, or, when a script asked, with nothing.
func (v *visit) did(err error, page, notice string) error {
	switch {
	case err != nil:
		return err
	case v.scripted():
		v.w.WriteHeader(http.StatusNoContent)
	default:
		v.redirectInOrg(page, notice)
	}
	return nil
}
