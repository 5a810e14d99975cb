package virtualhub

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DeviceSpec specifies a device. Its JSON is an entry of a devices file. Only Kind is required.
type DeviceSpec struct {
	// Kind is one of the table of kinds.
	Kind string `json:"kind"`
	// Name is the name that the device reports. Defaults to the kind's, such as "Lock".
	Name string `json:"name,omitempty"`
	// Manufacturer and Model default to the kind's.
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	// Insecure marks a device that joined without security. An insecure lock or barrier rejects
	// commands.
	Insecure bool `json:"insecure,omitempty"`
	// Interview is how long the hub asks a device that has joined for its channels. They are added
	// with device.updated. Defaults to none: the channels are known at once.
	Interview Duration `json:"interview,omitempty"`
	// WakesEvery is the interval at which a device that sleeps wakes. Commands wait until then.
	// Defaults to none: the device does not sleep.
	WakesEvery Duration `json:"wakes_every,omitempty"`
	// Gangs is the number of switches of a `switch`, 1 to 8. A single switch is at endpoint 0; two
	// or more are at the endpoints 1, 2, …. Defaults to 1.
	Gangs int `json:"gangs,omitempty"`
	// Min and Max bound the setpoints of a `thermostat`, in °C. Default to 5 and 35.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Latency is how long the device takes for a command. Defaults to the kind's: tenths of a
	// second for a switch, seconds for a garage door.
	Latency Duration `json:"latency,omitempty"`
	// Values are first values by channel key. A key with an endpoint is written "switch/2".
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

// Duration is a time.Duration whose JSON is a string such as "1.5s".
type Duration time.Duration

// MarshalJSON encodes d as time.Duration.String does.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON decodes what time.ParseDuration parses. It rejects negative durations.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return errors.New(`duration: must be a string such as "1.5s"`)
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	if parsed < 0 {
		return fmt.Errorf("duration: is %s, must not be negative", s)
	}
	*d = Duration(parsed)
	return nil
}

// complete validates s and fills in the defaults of its kind.
func (s DeviceSpec) complete() (DeviceSpec, error) {
	k, ok := kinds[s.Kind]
	if !ok {
		names := slices.Sorted(maps.Keys(kinds))
		return s, fmt.Errorf("kind: is %q, must be one of %s", s.Kind, strings.Join(names, ", "))
	}
	if s.Gangs != 0 && s.Kind != "switch" {
		return s, fmt.Errorf("gangs: is for a switch, not for a %s", s.Kind)
	}
	if s.Gangs < 0 || s.Gangs > 8 {
		return s, fmt.Errorf("gangs: is %d, must be 1 to 8", s.Gangs)
	}
	if (s.Min != nil || s.Max != nil) && s.Kind != "thermostat" {
		return s, fmt.Errorf("min and max: are for a thermostat, not for a %s", s.Kind)
	}
	if limits := s.limits(); limits.Min >= limits.Max {
		return s, fmt.Errorf("min: is %g, must be below max, %g", limits.Min, limits.Max)
	}
	s.Name, s.Model = cmp.Or(s.Name, k.name), cmp.Or(s.Model, k.model)
	s.Manufacturer = cmp.Or(s.Manufacturer, k.manufacturer)
	return s, nil
}

func (s DeviceSpec) limits() limits {
	l := limits{Min: 5, Max: 35}
	if s.Min != nil {
		l.Min = *s.Min
	}
	if s.Max != nil {
		l.Max = *s.Max
	}
	return l
}

// parseRef parses a ref such as "switch/2" or "switch".
func parseRef(s string) (ChannelRef, error) {
	name, endpoint, found := strings.Cut(s, "/")
	if !found {
		return ChannelRef{Key: name}, nil
	}
	n, err := strconv.Atoi(endpoint)
	if err != nil || n < 0 {
		return ChannelRef{}, fmt.Errorf(
			"values: %q must be a channel key, or a key and an endpoint as in switch/2", s,
		)
	}
	return ChannelRef{Key: name, Endpoint: n}, nil
}

// checkSpec returns an error that names the first invalid field of s, or nil.
func checkSpec(s DeviceSpec) error {
	_, err := newDevice(1, s, 0, time.Time{})
	return err
}
