package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/hubbridge/protocol"
)

// listedDevice is a device of devices.list.
type listedDevice = domain.Device

type deviceParams struct {
	DeviceID int64 `json:"device_id"`
}

type noParams struct{}

// valueMembers are the members of a channel that has values.
var valueMembers = []string{"value", "observed_at", "desired", "desired_at", "status"}

// abilityMembers are the members of a channel that has abilities.
var abilityMembers = []string{"readable", "writable", "capabilities"}

// checkDevices checks devices.list and devices.get, and selects the channel for commands. A hub
// that has none may still be getting to know its devices, as after a start: it is asked again for
// Config.ReadyWait.
func (s *script) checkDevices() {
	begun := time.Now()
	for s.readDevices() && s.target == nil && time.Since(begun) < s.cfg.ReadyWait && s.connected() {
		s.note(fmt.Sprintf("%s; asking again for %v", textNoTarget, s.cfg.ReadyWait))
		s.await(s.ctx, min(readyPause, s.cfg.ReadyWait), func() bool { return false })
	}
}

// readDevices reads the devices once. It returns false if an answer is wrong.
func (s *script) readDevices() bool {
	list := s.call(protocol.MethodDevicesList, noParams{})
	var devices []domain.Device
	if !s.wantResult("devices.list", list, func(result []byte) (err error) {
		if devices, err = codec.ParseDevices(result); err != nil {
			return err
		}
		return checkList(devices, result)
	}) && devices == nil {
		return false
	}
	s.devices = devices
	s.pass("devices.list")
	if len(devices) == 0 {
		s.hint("devices.get", "the hub has no devices")
		s.hint("devices.forget", "the hub has no devices")
	}
	for i, d := range devices {
		if i == maxDevices {
			break
		}
		get := s.call(protocol.MethodDevicesGet, deviceParams{d.ID})
		var full domain.Device
		if !s.wantResult("devices.get", get, func(result []byte) (err error) {
			if full, err = codec.ParseDevice(result); err != nil {
				return err
			}
			return checkDevice(d.ID, full, result)
		}) {
			return false
		}
		for _, ch := range full.Channels {
			known, err := checkValue(ch.Key, ch.Value)
			s.judgeValue(known && string(ch.Value) != "" && string(ch.Value) != "null", err,
				fmt.Sprintf("device %d", d.ID), get.payload)
		}
		s.consider(full)
	}
	if len(devices) > 0 {
		s.pass("devices.get")
	}
	return true
}

// maxDevices is how many devices are read one by one.
const maxDevices = 50

// checkList returns what is wrong with devices that the service reads but the protocol forbids.
func checkList(devices []domain.Device, result []byte) error {
	var raw struct {
		Devices []rawDevice `json:"devices"`
	}
	if err := json.Unmarshal(result, &raw); err != nil {
		return err
	}
	seen := map[int64]bool{}
	for i, d := range devices {
		if seen[d.ID] {
			return fmt.Errorf("device %d is listed twice", d.ID)
		}
		seen[d.ID] = true
		if err := checkChannels(d); err != nil {
			return err
		}
		for _, channel := range raw.Devices[i].Channels {
			for _, name := range valueMembers {
				if _, ok := channel[name]; ok {
					return fmt.Errorf(
						"a channel of device %d has the member %s, which only devices.get has",
						d.ID, name,
					)
				}
			}
			if err := hasMembers(channel, append([]string{"unit"}, abilityMembers...)); err != nil {
				return fmt.Errorf("device %d: %w", d.ID, err)
			}
		}
	}
	return nil
}

// checkDevice does the same for the device with an id.
func checkDevice(id int64, device domain.Device, result []byte) error {
	var raw struct {
		Device rawDevice `json:"device"`
	}
	if err := json.Unmarshal(result, &raw); err != nil {
		return err
	}
	if device.ID != id {
		return fmt.Errorf("it is device %d, want %d", device.ID, id)
	}
	for _, channel := range raw.Device.Channels {
		if err := hasMembers(
			channel,
			slices.Concat([]string{"unit"}, abilityMembers, valueMembers),
		); err != nil {
			return fmt.Errorf("device %d: %w", id, err)
		}
	}
	return checkChannels(device)
}

// rawDevice has the members of a device's channels as they were written.
type rawDevice struct {
	Channels []map[string]json.RawMessage `json:"channels"`
}

func hasMembers(channel map[string]json.RawMessage, names []string) error {
	for _, name := range names {
		if _, ok := channel[name]; !ok {
			return fmt.Errorf("a channel has no member %s, which may be null but not absent", name)
		}
	}
	return nil
}

// checkChannels returns an error if two channels of a device have the same key and endpoint.
func checkChannels(d domain.Device) error {
	seen := map[string]bool{}
	for _, ch := range d.Channels {
		name := ch.Key + "/" + strconv.FormatInt(ch.Endpoint, 10)
		if seen[name] {
			return fmt.Errorf("device %d has two channels %s", d.ID, name)
		}
		seen[name] = true
	}
	return nil
}

// unusedDevice returns an id that no device of the hub has.
func (s *script) unusedDevice() int64 {
	id := int64(987_654_321)
	for slices.ContainsFunc(s.devices, func(d domain.Device) bool { return d.ID == id }) {
		id++
	}
	return id
}

func (s *script) checkGetUnknown() {
	if s.wantError(
		"devices.get-unknown", s.call(protocol.MethodDevicesGet, deviceParams{s.unusedDevice()}),
		protocol.ErrorNotFound,
	) {
		s.pass("devices.get-unknown")
	}
}

func (s *script) checkUnknownMethod() {
	a := s.call("hubcheck.unknown", noParams{})
	if a.err.Type != "" {
		s.pass("unknown-method")
	} else {
		s.fail("unknown-method", a.payload, "%s, want an error", a.text())
	}
}

// checkLastEvent compares what the hub tells in last_event with what it had sent when it was asked.
func (s *script) checkLastEvent() {
	sent := s.highest
	list := s.call(protocol.MethodDevicesList, noParams{})
	devices, err := codec.ParseDevices(list.result)
	switch {
	case err != nil || len(devices) == 0:
		s.hint("last-event", "the hub lists no devices")
	case devices[0].LastEvent == nil:
		s.hint("last-event", "the hub does not tell last_event")
	case *devices[0].LastEvent < sent:
		s.fail("last-event", list.payload,
			"last_event is %d, but event %d was sent before the hub was asked",
			*devices[0].LastEvent, sent)
	default:
		s.pass("last-event")
	}
}

// checkForget asks for the removal of a device that does not exist and of one that can be reached.
// A right hub removes neither.
func (s *script) checkForget() {
	if !s.wantError(
		"devices.forget", s.call(protocol.MethodDevicesForget, deviceParams{s.unusedDevice()}),
		protocol.ErrorNotFound,
	) {
		return
	}
	i := slices.IndexFunc(s.devices, func(d domain.Device) bool {
		return len(d.Channels) > 0 &&
			!slices.ContainsFunc(d.Channels, func(ch domain.Channel) bool { return !ch.Available })
	})
	if i < 0 {
		s.hint("devices.forget", "the hub has no device that is available")
		return
	}
	if s.wantError(
		"devices.forget", s.call(protocol.MethodDevicesForget, deviceParams{s.devices[i].ID}),
		protocol.ErrorInvalidRequest,
	) {
		s.pass("devices.forget")
	}
}

// manyRequests is how many requests are sent at once. The service sends up to 256.
const manyRequests = 20

func (s *script) checkSideBySide() {
	calls := make([]*call, manyRequests)
	for i := range calls {
		calls[i] = s.begin(protocol.MethodDevicesList, noParams{}, false)
	}
	s.wait(s.ctx, calls...)
	answered := 0
	for _, a := range calls {
		if a.payload != nil {
			answered++
		}
	}
	switch answered {
	case manyRequests:
		s.pass("side-by-side")
	case 0:
		s.hint("side-by-side", "the hub answered no devices.list")
	default:
		s.fail("side-by-side", nil, "of %d requests sent at once %d were answered within %v",
			manyRequests, answered, callTimeout)
	}
}

// checkMembers sends a request with members that version 1 does not have. The line passes in
// checkReject, which sends such an ack.
func (s *script) checkMembers() {
	a := s.begin(
		protocol.MethodDevicesList,
		map[string]any{"later": map[string]int{"version": 2}},
		true,
	)
	s.wait(s.ctx, a)
	if a.result == nil && s.devices != nil {
		s.fail("unknown-members", a.payload, "%s that had unknown members", a.text())
	}
}

// window is a kind of window that a hub opens.
type window struct {
	open, close         string // methods
	lineOpen, lineClose string
}

func (s *script) checkPairing() {
	if !s.checkWindow(window{
		protocol.MethodPairingOpen, protocol.MethodPairingClose, "pairing.open", "pairing.close",
	}) {
		return
	}
	a := s.call(protocol.MethodPairingOpen, map[string]string{"setup_code": "?!"})
	if s.wantError("pairing-setup-code", a, protocol.ErrorInvalidRequest) {
		s.pass("pairing-setup-code")
	} else if a.result != nil {
		s.call(protocol.MethodPairingClose, noParams{})
	}
}

func (s *script) checkRemoval() {
	s.checkWindow(window{
		protocol.MethodRemovalOpen, protocol.MethodRemovalClose, "removal.open", "removal.close",
	})
}

// checkWindow opens a window twice and closes it twice.
func (s *script) checkWindow(w window) (opened bool) {
	opened = true
	for range 2 {
		opened = opened && s.wantResult(w.lineOpen, s.call(w.open, noParams{}), checkOpen)
	}
	if opened {
		s.pass(w.lineOpen)
	}
	closed := true
	for range 2 {
		closed = closed &&
			s.wantResult(w.lineClose, s.call(w.close, noParams{}), func([]byte) error {
				return nil
			})
	}
	if closed {
		s.pass(w.lineClose)
	}
	return opened
}

// windowSeconds is how long a window stays open. A hub may count a second as gone.
const windowSeconds = 120

func checkOpen(result []byte) error {
	opened, err := codec.ParseWindow(result)
	if err != nil {
		return err
	}
	if opened.ExpiresIn > windowSeconds || opened.ExpiresIn < windowSeconds-1 {
		return fmt.Errorf("expires_in is %d, want %d", opened.ExpiresIn, windowSeconds)
	}
	return nil
}
