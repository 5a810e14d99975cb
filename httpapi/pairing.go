package httpapi

import (
	"context"
	"net/http"

	"hubcloud/domain"
)

// windowBody is what opening a window answers.
type windowBody struct {
	Status string `json:"status"`
	// ExpiresIn is in seconds.
	ExpiresIn int `json:"expires_in"`
}

// openPairing lets one device join. The setup code is the device's own, and the hub's to judge.
func (a *api) openPairing(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	body, err := x.readOptionalObject("setup_code")
	if err != nil {
		return err
	}
	var setupCode *string
	if body.has("setup_code") {
		code, err := body.text("setup_code")
		if err != nil {
			return err
		}
		if code, err = domain.CleanName("setup_code", code); err != nil {
			return err
		}
		setupCode = &code
	}
	window, err := a.Devices.OpenPairing(x.ctx, hub, setupCode)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusAccepted, windowBody(window))
}

func (a *api) closePairing(x *exchange) error { return a.closeWindow(x, a.Devices.ClosePairing) }

// openRemoval lets a device leave, by a press of its button.
func (a *api) openRemoval(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	window, err := a.Devices.OpenRemoval(x.ctx, hub)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusAccepted, windowBody(window))
}

func (a *api) closeRemoval(x *exchange) error { return a.closeWindow(x, a.Devices.CloseRemoval) }

// closeWindow closes one, be it open or not.
func (a *api) closeWindow(x *exchange, closeAt func(context.Context, domain.HubID) error) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	if err := closeAt(x.ctx, hub); err != nil {
		return err
	}
	x.writeNothing()
	return nil
}
