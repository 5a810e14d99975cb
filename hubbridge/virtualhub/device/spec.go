package device

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec says what a device is; it is an entry of a devices file. Only Kind is needed.
type Spec struct {
	// Kind is one of Kinds().
	Kind string `json:"kind"`
	// Name is what the device reports as its name. Default: the kind's, for example "Lock".
	Name string `json:"name,omitempty"`
	// Manufacturer and Model default to the kind's.
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	// Insecure says that the device did not join securely enough. A lock or a barrier that did not
	// is not driven.
	Insecure bool `json:"insecure,omitempty"`
	// Gangs is how many switches a `switch` has, 1 to 8: two or more are the endpoints 1, 2, ….
	// Default 1, at endpoint 0.
	Gangs int `json:"gangs,omitempty"`
	// Min and Max bound the setpoints of a `thermostat`, in degrees C. Default 5 and 35.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Latency is how long the device takes for a command. Default: as long as such a device takes,
	// some tenths of a second for a switch, seconds for a garage door.
	Latency Duration `json:"latency,omitempty"`
	// Values are first values, by channel key; a key with an endpoint is written "switch/2".
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

// Duration is a time.Duration that is written in JSON as text, for example "1.5s".
type Duration time.Duration

// MarshalJSON writes it as time.Duration prints it.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what time.ParseDuration reads.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf(`a duration is text such as "1.5s"`)
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	if parsed < 0 {
		return fmt.Errorf("a duration cannot be negative: %s", s)
	}
	*d = Duration(parsed)
	return nil
}

// Kinds lists the kinds of device that there are, sorted.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// complete checks s and fills in what its kind knows.
func (s Spec) complete() (Spec, error) {
	k, ok := kinds[s.Kind]
	if !ok {
		return s, fmt.Errorf(
			"there is no kind of device %q: kind is one of %s", s.Kind, strings.Join(Kinds(), ", "),
		)
	}
	if s.Gangs != 0 && s.Kind != "switch" {
		return s, fmt.Errorf("gangs is for a switch, not for a %s", s.Kind)
	}
	if s.Gangs < 0 || s.Gangs > 8 {
		return s, fmt.Errorf("gangs must be from 1 to 8")
	}
	if (s.Min != nil || s.Max != nil) && s.Kind != "thermostat" {
		return s, fmt.Errorf("min and max are for a thermostat, not for a %s", s.Kind)
	}
	if limits := s.limits(); limits.Min >= limits.Max {
		return s, fmt.Errorf("min must be below max")
	}
	if s.Name == "" {
		s.Name = k.name
	}
	if s.Manufacturer == "" {
		s.Manufacturer = k.manufacturer
	}
	if s.Model == "" {
		s.Model = k.model
	}
	return s, nil
}

func (s Spec) limits() limits {
	l := limits{Min: 5, Max: 35}
	if s.Min != nil {
		l.Min = *s.Min
	}
	if s.Max != nil {
		l.Max = *s.Max
	}
	return l
}

// parseRef reads "switch/2" or "switch".
func parseRef(s string) (Ref, error) {
	name, endpoint, found := strings.Cut(s, "/")
	if !found {
		return Ref{Key: name}, nil
	}
	n, err := strconv.Atoi(endpoint)
	if err != nil || n < 0 {
		return Ref{}, fmt.Errorf(
			"%q is no channel: write a key, or a key and its endpoint as in switch/2", s,
		)
	}
	return Ref{Key: name, Endpoint: n}, nil
}

// Check says what is wrong with s; nil: nothing.
func Check(s Spec) error {
	_, err := New(1, s, 0, time.Time{})
	return err
}
