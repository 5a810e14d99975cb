package device

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hubcloud/domain"
)

// Ref names a channel within its device.
type Ref struct {
	Key      string `json:"key"`
	Endpoint int    `json:"endpoint"`
}

func (r Ref) String() string {
	if r.Endpoint == 0 {
		return r.Key
	}
	return fmt.Sprintf("%s at endpoint %d", r.Key, r.Endpoint)
}

// Channel is a channel of a device: a value that the device reports and, if the key is writable,
// accepts in commands.
type Channel struct {
	Ref
	// ChannelState has the values, each of type Value, and their status.
	domain.ChannelState
	// limits bound a setpoint; nil for other channels.
	limits *limits
	// choices are the names that a mode accepts; nil for other channels.
	choices []string
}

type limits struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// parseCommand decodes and validates the value of a command. Its errors are shown to the sender of
// the command.
func (c *Channel) parseCommand(raw json.RawMessage) (Value, error) {
	if !keys[c.Key].writable {
		return nil, fmt.Errorf("channel %s is read-only", c.Ref)
	}
	v, err := parse(c.Key, raw)
	if err != nil {
		return nil, err
	}
	if n, ok := v.(float64); ok && c.limits != nil && (n < c.limits.Min || n > c.limits.Max) {
		return nil, fmt.Errorf(
			"value of %s must be from %g to %g", c.Key, c.limits.Min, c.limits.Max,
		)
	}
	if s, ok := v.(string); ok && c.choices != nil {
		for _, choice := range c.choices {
			if s == choice {
				return v, nil
			}
		}
		return nil, fmt.Errorf(
			"value of %s must be one of %s", c.Key, strings.Join(c.choices, ", "),
		)
	}
	return v, nil
}

// The parts of a channel in a response, as in the API contract.
type (
	channelHead struct {
		Key       string  `json:"key"`
		Endpoint  int     `json:"endpoint"`
		Kind      string  `json:"kind"`
		Unit      *string `json:"unit"`
		Available bool    `json:"available"`
	}
	channelAbilities struct {
		Readable     bool `json:"readable"`
		Writable     bool `json:"writable"`
		Capabilities any  `json:"capabilities"`
	}
	channelState struct {
		Value      Value                `json:"value"`
		ObservedAt *string              `json:"observed_at"`
		Desired    Value                `json:"desired"`
		DesiredAt  *string              `json:"desired_at"`
		Status     domain.ChannelStatus `json:"status"`
	}

	// ListedChannel is a channel in a list of devices.
	ListedChannel struct {
		channelHead
		channelAbilities
	}
	// FullChannel is a channel of a single device.
	FullChannel struct {
		channelHead
		channelAbilities
		channelState
	}
	// CommandedChannel is a channel in the answer to a command.
	CommandedChannel struct {
		channelHead
		channelState
	}
)

func (c *Channel) head(available bool) channelHead {
	head := channelHead{Key: c.Key, Endpoint: c.Endpoint, Kind: c.Key, Available: available}
	if unit := keys[c.Key].unit; unit != "" {
		head.Unit = &unit
	}
	return head
}

func (c *Channel) abilities() channelAbilities {
	a := channelAbilities{Readable: true, Writable: keys[c.Key].writable, Capabilities: struct{}{}}
	if c.limits != nil {
		a.Capabilities = *c.limits
	}
	return a
}

func (c *Channel) state() channelState {
	return channelState{
		Value: c.Value, ObservedAt: timestamp(c.ObservedAt),
		Desired: c.Desired, DesiredAt: timestamp(c.DesiredAt), Status: c.Status,
	}
}

func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := domain.FormatTime(t)
	return &s
}
