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
func (v *visit) command(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	command, err := live.ReadCommand(v.member.OrgID, hub, device, v.r.PostForm)
	if err == nil {
		_, err = v.p.Commands.Send(v.r.Context(), v.origin(), command)
	}
	if v.field("from") == "device" {
		return v.didAtDevice(err, hub, device, v.back(hub, device), "command-sent", refusedForm{})
	}
	return v.didAtHub(err, hub, v.back(hub, device), "command-sent", refusedForm{})
}

// back is the page that a device's form came from: the hub's, unless it says that it is the
// device's own.
func (v *visit) back(hub domain.HubID, device int64) string {
	if v.field("from") == "device" {
		return deviceAddress(hub, device)
	}
	return hubAddress(hub)
}

// labelDevice names and places a device; an empty field clears.
func (v *visit) labelDevice(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	return v.didAtDevice(v.label(hub, device), hub, device, v.back(hub, device), "device-labeled",
		refusedForm{Form: "label", Name: v.field("name"), Place: v.field("room")})
}

// label does what the form of a device's name and room asks for. The hub is asked first: a name for
// a device that is not there would wait for the next one of that number.
func (v *visit) label(hub domain.HubID, device int64) (err error) {
	change := domain.LabelDevice{
		OrgID:    v.member.OrgID,
		HubID:    hub,
		DeviceID: device,
		SetName:  true,
		SetRoom:  true,
	}
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
	return err
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
	if change.Name, err = v.optionalName("name"); err == nil {
		_, err = v.p.Directory.UpdateHub(v.r.Context(), v.origin(), change)
	}
	return v.didAtHub(
		err, hub, hubAddress(hub), "hub-placed",
		refusedForm{Form: "place", Name: v.field("name"), Place: site},
	)
}

// forgetDevice makes the hub forget a device that it cannot reach any more.
func (v *visit) forgetDevice(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	return v.didAtDevice(
		v.p.Devices.Forget(v.r.Context(), hub, device), hub, device, hubAddress(hub),
		"device-forgotten", refusedForm{Form: "forget"},
	)
}

// openPairing lets a device join, and sends the browser to the page that counts down.
func (v *visit) openPairing(hub domain.HubID) error {
	code, err := v.optionalName("setup_code")
	var window domain.Window
	if err == nil {
		window, err = v.p.Devices.OpenPairing(v.r.Context(), hub, code)
	}
	return v.didAtHub(
		err, hub, v.windowAddress(hub, "pairing", window), "",
		refusedForm{Form: "pairing", Name: v.field("setup_code")},
	)
}

// openRemoval lets a device leave.
func (v *visit) openRemoval(hub domain.HubID) error {
	window, err := v.p.Devices.OpenRemoval(v.r.Context(), hub)
	return v.didAtHub(
		err, hub, v.windowAddress(hub, "removal", window), "", refusedForm{Form: "removal"},
	)
}

func (v *visit) windowAddress(hub domain.HubID, name string, window domain.Window) string {
	until := v.p.Now().Add(time.Duration(window.ExpiresIn) * time.Second)
	return fmt.Sprintf("%s?%s=%d", hubAddress(hub), name, until.Unix())
}

func (v *visit) closePairing(hub domain.HubID) error {
	return v.didAtHub(
		v.p.Devices.ClosePairing(v.r.Context(), hub), hub, hubAddress(hub), "window-closed",
		refusedForm{},
	)
}

func (v *visit) closeRemoval(hub domain.HubID) error {
	return v.didAtHub(
		v.p.Devices.CloseRemoval(v.r.Context(), hub), hub, hubAddress(hub), "window-closed",
		refusedForm{},
	)
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
	return v.didAtHub(
		v.p.Directory.ResetLink(v.r.Context(), v.origin(), v.member.OrgID, hub), hub,
		hubAddress(hub), "link-reset", refusedForm{},
	)
}

// refusedForm is what a page about a hub shows of a form that was refused; the zero value is of
// none.
type refusedForm struct {
	// Form is which: pairing, removal, place, label or forget; "" for one that has no place for it,
	// so that the page says it on top.
	Form, Problem string
	// Name and Place are what was typed: a name or a setup code; a site or a room.
	Name, Place string
}

// didAtHub answers an action. What refuses it is told on the hub's page, unless that cannot be
// shown either.
func (v *visit) didAtHub(
	err error, hub domain.HubID, page, notice string, refused refusedForm,
) error {
	if refused.Problem = v.problemOf(err); refused.Problem == "" ||
		v.showHub(statusOf(domain.CodeOf(err)), hub, refused) != nil {
		return v.did(err, page, notice)
	}
	return nil
}

// didAtDevice answers an action. What refuses it is told on the device's page, unless that cannot
// be shown either: it needs the hub.
func (v *visit) didAtDevice(
	err error, hub domain.HubID, device int64, page, notice string, refused refusedForm,
) error {
	if refused.Problem = v.problemOf(err); refused.Problem == "" ||
		v.showDevice(statusOf(domain.CodeOf(err)), hub, device, refused) != nil {
		return v.did(err, page, notice)
	}
	return nil
}

// problemOf says what a page tells of a refusal; "" when there is none, or when a script asks,
// which is told by itself.
func (v *visit) problemOf(err error) string {
	problem, ok := refusalText(err)
	if !ok || v.scripted() {
		return ""
	}
	return problem
}

// did answers an action: with a redirect to a page that says what was done, or, when a script
// asked, with nothing.
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
