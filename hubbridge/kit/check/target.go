package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// target is the channel that gets the commands.
type target struct {
	device   int64
	key      string
	endpoint int64
	// readOnly is the key of a channel of the device that is not writable; empty for none.
	readOnly         string
	readOnlyEndpoint int64
	// values are two values that the channel takes; next is the index of the one to send.
	values [2]json.RawMessage
	next   int
	rank   int
	// resolution is the step between the numbers that the channel takes; 0 if it is not known.
	resolution float64
}

// isNearest reports whether a reported number is the nearest to the one asked that the channel takes.
func (t *target) isNearest(asked, reported json.RawMessage) bool {
	x, ok := domain.JSONNumber(asked)
	y, both := domain.JSONNumber(reported)
	return ok && both && domain.IsNearest(x, y, t.resolution)
}

// harmless are the keys of writable channels in the order in which the script selects one.
var harmless = []string{
	"switch",
	"level",
	"position",
	"heating_setpoint",
	"cooling_setpoint",
	"color",
	"local_protection",
	"mode",
	"fan_mode",
	"lock",
	"barrier",
}

// commandValues returns two values for a channel, and false if it has none that every hub takes.
func commandValues(ch domain.Channel) (values [2]json.RawMessage, ok bool) {
	two := func(a, b string) ([2]json.RawMessage, bool) {
		return [2]json.RawMessage{json.RawMessage(a), json.RawMessage(b)}, true
	}
	switch ch.Key {
	case "switch", "lock", "barrier", "local_protection":
		if string(ch.Value) == "true" {
			return two("false", "true")
		}
		return two("true", "false")
	case "level", "position":
		return two("40", "60")
	case "color":
		return two(`{"red":255,"green":128,"blue":0}`, `{"red":0,"green":128,"blue":255}`)
	case "heating_setpoint", "cooling_setpoint":
		var limits struct{ Min, Max *float64 }
		if json.Unmarshal(ch.Capabilities, &limits) != nil || limits.Min == nil || limits.Max == nil ||
			*limits.Max-*limits.Min < 2 {
			return two("20", "21")
		}
		middle := int((*limits.Min + *limits.Max) / 2)
		return two(strconv.Itoa(middle), strconv.Itoa(middle+1))
	case "mode":
		return two(`"off"`, `"heat"`)
	case "fan_mode":
		return two(`"auto_low"`, `"low"`)
	}
	return values, false
}

// consider makes a channel of a device the target if it suits better than the present one.
func (s *script) consider(d domain.Device) {
	if s.cfg.Device != nil && *s.cfg.Device != d.ID {
		return
	}
	var readOnly domain.Channel
	for _, ch := range d.Channels {
		if !ch.Writable {
			readOnly = ch
		}
	}
	for _, ch := range d.Channels {
		rank := slices.Index(harmless, ch.Key)
		values, ok := commandValues(ch)
		if !ok || rank < 0 || !ch.Writable || !ch.Available || s.target != nil && s.target.rank <= rank {
			continue
		}
		s.target = &target{
			device: d.ID, key: ch.Key, endpoint: ch.Endpoint, values: values, rank: rank,
			readOnly: readOnly.Key, readOnlyEndpoint: readOnly.Endpoint,
			resolution: domain.Resolution(ch.Key, ch.Capabilities),
		}
	}
}

// noTarget states why lines that need a command are not seen.
func (s *script) noTarget() string {
	if s.waited >= s.cfg.ReadyWait {
		return s.notReady()
	}
	return textNoTarget
}

const textNoTarget = "devices.list and devices.get show no writable channel that is available"

func (t *target) String() string {
	return fmt.Sprintf(
		"%s of device %d",
		strings.TrimSuffix(t.key+"/"+strconv.FormatInt(t.endpoint, 10), "/0"),
		t.device,
	)
}
