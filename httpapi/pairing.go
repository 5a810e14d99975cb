package httpapi

import (
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
func (a *api) openPairing(req *request, hub domain.HubID) error {
	body := req.readOptionalFields("setup_code")
	setupCode := body.given("setup_code")
	if body.err == nil && setupCode != nil {
		*setupCode, body.err = domain.CleanSetupCode("setup_code", *setupCode)
	}
	if body.err != nil {
		return body.err
	}
	window, err := a.Devices.OpenPairing(req.ctx, hub, setupCode)
	return req.answer(http.StatusAccepted, windowBody(window), err)
}

// openRemoval opens the removal window, in which a device leaves when its button is pressed.
func (a *api) openRemoval(req *request, hub domain.HubID) error {
	window, err := a.Devices.OpenRemoval(req.ctx, hub)
	return req.answer(http.StatusAccepted, windowBody(window), err)
}

// closePairing and closeRemoval close a window, which need not be open.
func (a *api) closePairing(req *request, hub domain.HubID) error {
	return req.answerNothing(a.Devices.ClosePairing(req.ctx, hub))
}

func (a *api) closeRemoval(req *request, hub domain.HubID) error {
	return req.answerNothing(a.Devices.CloseRemoval(req.ctx, hub))
}
