package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Handler is a hub's own part: its devices. The hub calls each method for one method of the
// protocol, concurrently, and sends what it returns to the cloud.
//
// The cloud orders answers and events: Devices and Device must have everything that was emitted
// before they were called. So a change of a device's state must be made before its event is
// emitted, or both under a lock that Devices and Device take.
//
// An error should be an *Error (see Errorf). Any other error is logged, and the cloud is told
// without details that the hub failed. ctx ends with the connection, and once the cloud no longer
// waits for the answer; an answer after that is not sent.
type Handler interface {
	// Devices returns all devices. The cloud is sent no values of their channels.
	Devices(ctx context.Context) ([]Device, error)
	// Device returns a device, or ErrorNotFound.
	Device(ctx context.Context, id int64) (Device, error)
	// Forget removes a device that the hub can no longer reach, and emits device.forgotten. It
	// returns ErrorNotFound, ErrorInvalidRequest if the device is still on the hub's network, or
	// ErrorHubUnavailable if the radio cannot tell. After an error the device stays.
	Forget(ctx context.Context, id int64) error
	// Command starts a command. It either calls cmd.Accept and returns its error, or rejects the
	// command: ErrorNotFound, ErrorInvalidRequest, ErrorCommandRefused or ErrorHubUnavailable. The
	// outcome is a channel.observed event after Accept, or StatusChanged for one that is abandoned.
	Command(ctx context.Context, cmd *Command) error
	// OpenPairing lets one device join within the returned time. setupCode is the code on the
	// device: a PIN of 5 digits, a DSK of 8 groups of 5 digits, or the text of a QR code; "" for
	// none. The hub has rejected codes of another form.
	OpenPairing(ctx context.Context, setupCode string) (time.Duration, error)
	// ClosePairing closes the pairing window, if it is open, and drops a setup code that was kept
	// for a device that joins later by itself.
	ClosePairing(ctx context.Context) error
	// OpenRemoval lets one device leave, when its button is pressed within the returned time.
	OpenRemoval(ctx context.Context) (time.Duration, error)
	// CloseRemoval closes the removal window, if it is open.
	CloseRemoval(ctx context.Context) error
}

// maxToken is the length of the longest response token, in bytes. MQTT allows topics of 65,535
// bytes.
const maxToken = 1024

// errBadRequest is returned by decodeRequest for a request that cannot be answered.
var errBadRequest = errors.New("malformed request")

var (
	errNoDeviceID = Errorf(ErrorInvalidRequest, "device_id is missing")
	errSlot       = Errorf(ErrorInvalidRequest, "slot must be a number from 1")
)

// credentialCodes matches a code of a lock.
var credentialCodes = regexp.MustCompile(`^[0-9]{4,10}$`)

// setupCodes matches a PIN, a DSK (eight groups of five digits) or the text of a QR code (Z-Wave's
// digits or Matter's). domain.CleanSetupCode limits their length: limits here would make this a large
// expression, which takes every process milliseconds to compile.
var setupCodes = regexp.MustCompile(`^(\d{5}|\d{5}(-\d{5}){7}|90\d{50,}|MT:[0-9A-Z.-]{10,})$`)

var errSetupCode = Errorf(
	ErrorInvalidRequest,
	"setup_code must be a PIN of 5 digits, a DSK of 8 groups of 5 digits, or the text of a QR code",
)

// decodeRequest decodes a request from the cloud. It returns errBadRequest if the request cannot be
// answered: it is not readable, has no id, or its token cannot be part of a topic.
func decodeRequest(payload []byte) (protocol.Request, error) {
	var req protocol.Request
	if err := json.Unmarshal(payload, &req); err != nil {
		return req, fmt.Errorf("%w: %w", errBadRequest, err)
	}
	if req.ID == "" {
		return req, fmt.Errorf("%w: id: must not be empty", errBadRequest)
	}
	if !topicLevels(req.Token) {
		return req, fmt.Errorf(
			"%w: token: must be 1 to %d bytes of topic levels, without wildcards", errBadRequest,
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

// HandleRequest calls the handler for a request and returns the response.
func (e *Engine) HandleRequest(
	ctx context.Context, handler Handler, req protocol.Request, now time.Time,
) protocol.Response {
	result, err := e.dispatch(ctx, handler, req, now)
	e.mu.Lock()
	e.counts.Requests++
	e.mu.Unlock()
	var raw json.RawMessage
	if err == nil {
		raw, err = json.Marshal(result)
	}
	if err != nil {
		rejection := e.protocolError(err, req.Method)
		e.cfg.Logger.Info(
			"hub request", "request_id", req.ID, "method", req.Method, "error_type", rejection.Type,
		)
		return protocol.Response{ID: req.ID, Error: rejection}
	}
	e.cfg.Logger.Info("hub request", "request_id", req.ID, "method", req.Method)
	return protocol.Response{ID: req.ID, Result: raw}
}

// protocolError returns the error for a response. An error that is no *Error is logged: it may
// contain what the cloud must not see.
func (e *Engine) protocolError(err error, method string) *protocol.Error {
	if rejection := new(Error); errors.As(err, &rejection) {
		return &protocol.Error{Type: rejection.Type, Message: rejection.Message}
	}
	e.cfg.Logger.Error("hub request failed", "method", method, "error", err)
	return &protocol.Error{Type: errorHub, Message: "the hub failed"}
}

type (
	deviceParams struct {
		DeviceID *int64 `json:"device_id"`
	}
	pairingParams struct {
		SetupCode *string `json:"setup_code"`
	}
	noParams struct{}
)

// dispatch calls the handler's method for a request.
func (e *Engine) dispatch(
	ctx context.Context, handler Handler, req protocol.Request, now time.Time,
) (any, error) {
	switch req.Method {
	case protocol.MethodDevicesList:
		return withParams(req, func(noParams) (any, error) {
			last := e.lastEvent()
			devices, err := handler.Devices(ctx)
			result := devicesResult{[]deviceShape[listedChannel]{}, last}
			for _, d := range devices {
				result.Devices = append(result.Devices, shape(d, listed))
			}
			return result, err
		})
	case protocol.MethodDevicesGet:
		return withDeviceID(req, func(id int64) (any, error) {
			last := e.lastEvent()
			d, err := handler.Device(ctx, id)
			return deviceResult{shape(d, full), last}, err
		})
	case protocol.MethodDevicesForget:
		return withDeviceID(req, func(id int64) (any, error) {
			return emptyResult{}, handler.Forget(ctx, id)
		})
	case protocol.MethodChannelsCommand:
		return withParams(req, func(p commandParams) (any, error) {
			return e.command(ctx, handler, p, now)
		})
	case protocol.MethodPairingOpen:
		return withParams(req, func(p pairingParams) (any, error) {
			code := ""
			if p.SetupCode != nil {
				var err error
				code, err = domain.CleanSetupCode("setup_code", *p.SetupCode)
				if err != nil || !setupCodes.MatchString(code) {
					return nil, errSetupCode
				}
			}
			return opened(handler.OpenPairing(ctx, code))
		})
	case protocol.MethodPairingClose:
		return withParams(req, func(noParams) (any, error) {
			return emptyResult{}, handler.ClosePairing(ctx)
		})
	case protocol.MethodRemovalOpen:
		return withParams(req, func(noParams) (any, error) { return opened(handler.OpenRemoval(ctx)) })
	case protocol.MethodRemovalClose:
		return withParams(req, func(noParams) (any, error) {
			return emptyResult{}, handler.CloseRemoval(ctx)
		})
	}
	if codes, ok := handler.(CredentialHandler); ok {
		switch req.Method {
		case protocol.MethodCredentialsList:
			return withDeviceID(req, func(id int64) (any, error) { return codes.Slots(ctx, id) })
		case protocol.MethodCredentialsSet:
			return withParams(req, func(p protocol.CredentialParams) (any, error) {
				return setCredential(ctx, codes, p)
			})
		case protocol.MethodCredentialsRemove:
			return withParams(req, func(p slotParams) (any, error) {
				switch {
				case p.DeviceID == nil:
					return nil, errNoDeviceID
				case p.Slot < 1:
					return nil, errSlot
				}
				return emptyResult{}, codes.RemoveCredential(ctx, *p.DeviceID, p.Slot)
			})
		}
	}
	return nil, Errorf("unknown_method", "this hub has no method %q", req.Method)
}

// lastEvent returns the number of the last event, before the handler is asked for the state that
// the event is about. An event that follows meanwhile counts as newer than the answer, which does
// no harm. A number that may be used again after a power cut is not told: the cloud would ignore
// the event that has it then.
func (e *Engine) lastEvent() *uint64 {
	_, newest := e.journal.bounds()
	if err := e.journal.sync(); err != nil {
		e.cfg.Logger.Warn("last_event left out of an answer", "error", err)
		return nil
	}
	return &newest
}

// opened returns the result of opening a window, with the remaining time rounded up to seconds.
func opened(remaining time.Duration, err error) (any, error) {
	return windowResult{
		Status: domain.WindowOpen, ExpiresIn: int((remaining + time.Second - 1) / time.Second),
	}, err
}

// withParams decodes a request's params and calls do. Absent params are an empty object. Unknown
// fields are ignored: the cloud may be newer than the hub.
func withParams[P any](req protocol.Request, do func(P) (any, error)) (any, error) {
	var params P
	if len(req.Params) > 0 && string(req.Params) != "null" {
		if err := json.Unmarshal(req.Params, &params); err != nil {
			return nil, Errorf(ErrorInvalidRequest, "params of %s: %v", req.Method, err)
		}
	}
	return do(params)
}

func withDeviceID(req protocol.Request, do func(id int64) (any, error)) (any, error) {
	return withParams(req, func(p deviceParams) (any, error) {
		if p.DeviceID == nil {
			return nil, errNoDeviceID
		}
		return do(*p.DeviceID)
	})
}
