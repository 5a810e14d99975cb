package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
)

// maxToken is the length of the longest response token, in bytes. MQTT allows topics of 65,535
// bytes.
const maxToken = 1024

// ErrBadRequest is returned by DecodeRequest for a request that cannot be answered.
var ErrBadRequest = errors.New("malformed request")

// DecodeRequest decodes a request from the cloud. It returns ErrBadRequest if the request cannot be
// answered: it is not readable, has no id, or its token cannot be part of a topic.
func DecodeRequest(payload []byte) (protocol.Request, error) {
	var req protocol.Request
	if err := json.Unmarshal(payload, &req); err != nil {
		return req, fmt.Errorf("%w: %w", ErrBadRequest, err)
	}
	if req.ID == "" {
		return req, fmt.Errorf("%w: id: must not be empty", ErrBadRequest)
	}
	if !topicLevels(req.Token) {
		return req, fmt.Errorf(
			"%w: token: must be 1 to %d bytes of topic levels, without wildcards", ErrBadRequest,
			maxToken,
		)
	}
	return req, nil
}

// topicLevels reports whether s can be part of a topic: non-empty levels without wildcards and
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

// HandleRequest runs a request and returns the response.
func (c *Controller) HandleRequest(req protocol.Request, now time.Time) protocol.Response {
	c.mu.Lock()
	result, rejection := c.dispatch(req, now)
	c.mu.Unlock()
	if rejection != nil {
		c.cfg.Logger.Info(
			"hub request", "request_id", req.ID, "method", req.Method, "error_type", rejection.Type,
		)
		return protocol.Response{ID: req.ID, Error: rejection}
	}
	c.cfg.Logger.Info("hub request", "request_id", req.ID, "method", req.Method)
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

// dispatch runs the method of a request, with the lock held.
func (c *Controller) dispatch(req protocol.Request, now time.Time) (any, *protocol.Error) {
	switch req.Method {
	case protocol.MethodDevicesList:
		return withParams(
			req, func(noParams) (any, *protocol.Error) { return c.listDevices(), nil },
		)
	case protocol.MethodDevicesGet:
		return withParams(req, func(p deviceParams) (any, *protocol.Error) {
			d, rejection := c.findDevice(p.DeviceID)
			if rejection != nil {
				return nil, rejection
			}
			return deviceResult{d.Full()}, nil
		})
	case protocol.MethodDevicesForget:
		return withParams(
			req, func(p deviceParams) (any, *protocol.Error) { return c.forget(p, now) },
		)
	case protocol.MethodChannelsCommand:
		return withParams(
			req, func(p commandParams) (any, *protocol.Error) { return c.command(p, now) },
		)
	case protocol.MethodPairingOpen:
		return withParams(
			req, func(p pairingParams) (any, *protocol.Error) { return c.openPairing(p, now) },
		)
	case protocol.MethodPairingClose:
		return withParams(
			req, func(noParams) (any, *protocol.Error) { return c.closeWindow(&c.pairing) },
		)
	case protocol.MethodRemovalOpen:
		return withParams(req, func(noParams) (any, *protocol.Error) { return c.openRemoval(now) })
	case protocol.MethodRemovalClose:
		return withParams(
			req, func(noParams) (any, *protocol.Error) { return c.closeWindow(&c.removal) },
		)
	default:
		return nil, reject("unknown_method", "this hub has no method %q", req.Method)
	}
}

// withParams decodes a request's params and calls do. Absent params are an empty object. Unknown
// fields are ignored: the cloud may be newer than the hub.
func withParams[P any](
	req protocol.Request, do func(P) (any, *protocol.Error),
) (any, *protocol.Error) {
	var params P
	if len(req.Params) > 0 && string(req.Params) != "null" {
		if err := json.Unmarshal(req.Params, &params); err != nil {
			return nil, reject(protocol.ErrorInvalidRequest, "params of %s: %v", req.Method, err)
		}
	}
	return do(params)
}

func (c *Controller) listDevices() devicesResult {
	out := devicesResult{Devices: []device.View[device.ListedChannel]{}}
	for _, d := range c.devices {
		out.Devices = append(out.Devices, d.Listed())
	}
	return out
}

func (c *Controller) findDevice(id *int64) (*device.Device, *protocol.Error) {
	if id == nil {
		return nil, reject(protocol.ErrorInvalidRequest, "device_id is missing")
	}
	d := c.device(*id)
	if d == nil {
		return nil, reject(protocol.ErrorNotFound, "no device %d", *id)
	}
	return d, nil
}

// forget removes a device that the radio cannot reach. Others leave through a removal window.
func (c *Controller) forget(p deviceParams, now time.Time) (any, *protocol.Error) {
	d, rejection := c.findDevice(p.DeviceID)
	if rejection != nil {
		return nil, rejection
	}
	if d.Available {
		return nil, reject(
			protocol.ErrorInvalidRequest,
			"%s is still on the hub's network: remove it through a removal window", d.Spec.Name,
		)
	}
	c.remove(d, now)
	return noParams{}, nil
}

func (c *Controller) openPairing(p pairingParams, now time.Time) (any, *protocol.Error) {
	code := ""
	if p.SetupCode != nil {
		if code = strings.TrimSpace(*p.SetupCode); !setupCodes.MatchString(code) {
			return nil, reject(
				protocol.ErrorInvalidRequest,
				"setup_code must be a PIN of 5 digits, a DSK of 8 groups of 5 digits, or the text of a QR code",
			)
		}
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return nil, unavailable
	}
	opened := c.open(&c.pairing, code, now)
	c.notify()
	return opened, nil
}

func (c *Controller) openRemoval(now time.Time) (any, *protocol.Error) {
	if unavailable := c.unavailable(); unavailable != nil {
		return nil, unavailable
	}
	opened := c.open(&c.removal, "", now)
	c.notify()
	return opened, nil
}

func (c *Controller) closeWindow(w *window) (any, *protocol.Error) {
	*w = window{}
	return noParams{}, nil
}
