package httpapi

import (
	"context"
	"net/http"

	"hubcloud/domain"
)

// windowBody is the answer to opening a window.
type windowBody struct {
	Status string `json:"status"`
	// ExpiresIn is in seconds.
	ExpiresIn int `json:"expires_in"`
}

// openPairing opens the pairing window, in which one device can join. Only the hub can judge the
// device's setup code.
func (a *api) openPairing(req *request) error {
	hub, err := a.ownHub(req)
	if err != nil {
		return err
	}
	body, err := req.readOptionalObject("setup_code")
	if err != nil {
		return err
	}
	var setupCode *string
	if body.has("setup_code") {
		code, err := body.stringField("setup_code")
		if err != nil {
			return err
		}
		if code, err = domain.CleanSetupCode("setup_code", code); err != nil {
			return err
		}
		setupCode = &code
	}
	window, err := a.Devices.OpenPairing(req.ctx, hub, setupCode)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusAccepted, windowBody(window))
}

func (a *api) closePairing(req *request) error { return a.closeWindow(req, a.Devices.ClosePairing) }

// openRemoval opens the removal window, in which a device leaves when its button is pressed.
func (a *api) openRemoval(req *request) error {
	hub, err := a.ownHub(req)
	if err != nil {
		return err
	}
	window, err := a.Devices.OpenRemoval(req.ctx, hub)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusAccepted, windowBody(window))
}

func (a *api) closeRemoval(req *request) error { return a.closeWindow(req, a.Devices.CloseRemoval) }

// closeWindow closes a window, which need not be open.
func (a *api) closeWindow(req *request, closeAt func(context.Context, domain.HubID) error) error {
	hub, err := a.ownHub(req)
	if err != nil {
		return err
	}
	if err := closeAt(req.ctx, hub); err != nil {
		return err
	}
	req.writeNoContent()
	return nil
}
