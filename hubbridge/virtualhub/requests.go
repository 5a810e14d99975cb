package virtualhub

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
)

// maxToken is the longest response token that is copied, in bytes: a topic has 65,535 at most, and
// nobody needs nearly as many.
const maxToken = 1024

var errBadRequest = errors.New("not a request")

// decodeRequest reads a request. One that cannot be answered, since it is not readable or its token
// is no topic levels, is an error.
func decodeRequest(payload []byte) (protocol.Request, error) {
	var req protocol.Request
	if err := json.Unmarshal(payload, &req); err != nil {
		return req, errors.Join(errBadRequest, err)
	}
	if req.ID == "" {
		return req, errors.Join(errBadRequest, errors.New("no id"))
	}
	if !topicLevels(req.Token) {
		return req, errors.Join(errBadRequest, errors.New("token is no topic levels"))
	}
	return req, nil
}

// topicLevels says whether s can stand in a topic: levels that are not empty, without wildcards or
// control characters.
func topicLevels(s string) bool {
	if s == "" || len(s) > maxToken || strings.ContainsAny(s, "+#") {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return false
		}
	}
	for level := range strings.SplitSeq(s, "/") {
		if level == "" {
			return false
		}
	}
	return true
}

// answer answers a request.
func (c *controller) answer(req protocol.Request, now time.Time) protocol.Response {
	c.mu.Lock()
	result, refusal := c.dispatch(req, now)
	c.mu.Unlock()
	if refusal != nil {
		c.log.Info(
			"hub request", "request_id", req.ID, "method", req.Method, "refusal", refusal.Type,
		)
		return protocol.Response{ID: req.ID, Error: refusal}
	}
	c.log.Info("hub request", "request_id", req.ID, "method", req.Method)
	return protocol.Response{ID: req.ID, Result: mustJSON(result)}
}

type (
	deviceParams struct {
		DeviceID *int64 `json:"device_id"`
	}
	pairingParams struct {
		SetupCode *string `json:"setup_code"`
	}
	noParams struct{}

	devicesResult struct {
		Devices []device.View[device.ListedChannel] `json:"devices"`
	}
	deviceResult struct {
		Device device.View[device.FullChannel] `json:"device"`
	}
)

func (c *controller) dispatch(req protocol.Request, now time.Time) (any, *protocol.Error) {
	switch req.Method {
	case protocol.MethodDevicesList:
		return with(req, func(noParams) (any, *protocol.Error) { return c.listDevices(), nil })
	case protocol.MethodDevicesGet:
		return with(req, func(p deviceParams) (any, *protocol.Error) {
			d, refusal := c.find(p)
			if refusal != nil {
				return nil, refusal
			}
			return deviceResult{d.Full()}, nil
		})
	case protocol.MethodDevicesForget:
		return with(req, func(p deviceParams) (any, *protocol.Error) { return c.forget(p, now) })
	case protocol.MethodChannelsCommand:
		return with(req, func(p commandParams) (any, *protocol.Error) { return c.command(p, now) })
	case protocol.MethodPairingOpen:
		return with(req, func(p pairingParams) (any, *protocol.Error) { return c.openPairing(p, now) })
	case protocol.MethodPairingClose:
		return with(req, func(noParams) (any, *protocol.Error) { return c.closeWindow(&c.pairing) })
	case protocol.MethodRemovalOpen:
		return with(req, func(noParams) (any, *protocol.Error) { return c.openRemoval(now) })
	case protocol.MethodRemovalClose:
		return with(req, func(noParams) (any, *protocol.Error) { return c.closeWindow(&c.removal) })
	default:
		return nil, refuse("unknown_method", "this hub has no method %q", req.Method)
	}
}

// with reads a request's params and hands them to do. Absent params are an empty object; fields
// that nobody knows are passed over, for a cloud that is newer than its hubs.
func with[P any](req protocol.Request, do func(P) (any, *protocol.Error)) (any, *protocol.Error) {
	var params P
	if len(req.Params) > 0 && string(req.Params) != "null" {
		if err := json.Unmarshal(req.Params, &params); err != nil {
			return nil, refuse("invalid_request", "params of %s: %v", req.Method, err)
		}
	}
	return do(params)
}

func (c *controller) listDevices() devicesResult {
	out := devicesResult{Devices: []device.View[device.ListedChannel]{}}
	for _, d := range c.devices {
		out.Devices = append(out.Devices, d.Listed())
	}
	return out
}

func (c *controller) find(p deviceParams) (*device.Device, *protocol.Error) {
	if p.DeviceID == nil {
		return nil, refuse("invalid_request", "device_id is missing")
	}
	d := c.device(*p.DeviceID)
	if d == nil {
		return nil, refuse("not_found", "no device %d", *p.DeviceID)
	}
	return d, nil
}

func (c *controller) forget(p deviceParams, now time.Time) (any, *protocol.Error) {
	d, refusal := c.find(p)
	if refusal != nil {
		return nil, refusal
	}
	if d.Available {
		return nil, refuse(
			"invalid_request",
			"%s is still on the hub's network: remove it through a removal window", d.Spec.Name,
		)
	}
	c.remove(d, now)
	return noParams{}, nil
}

func (c *controller) openPairing(p pairingParams, now time.Time) (any, *protocol.Error) {
	code := ""
	if p.SetupCode != nil {
		if code = strings.TrimSpace(*p.SetupCode); !setupCodes.MatchString(code) {
			return nil, refuse(
				"invalid_request",
				"setup_code must be a PIN of 5 digits, a DSK of 8 groups of 5 digits, or the text of a QR code",
			)
		}
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return nil, unavailable
	}
	c.stir()
	return c.begin(&c.pairing, code, now), nil
}

func (c *controller) openRemoval(now time.Time) (any, *protocol.Error) {
	if unavailable := c.unavailable(); unavailable != nil {
		return nil, unavailable
	}
	c.stir()
	return c.begin(&c.removal, "", now), nil
}

func (c *controller) closeWindow(w *window) (any, *protocol.Error) {
	*w = window{}
	return noParams{}, nil
}
