package virtualhub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
)

// ChannelRef names a channel within its device.
type ChannelRef struct {
	Key      string `json:"key"`
	Endpoint int    `json:"endpoint"`
}

func (r ChannelRef) String() string {
	if r.Endpoint == 0 {
		return r.Key
	}
	return fmt.Sprintf("%s at endpoint %d", r.Key, r.Endpoint)
}

// channel is a channel of a device: a value that the device reports and, if the key is writable,
// accepts in commands.
type channel struct {
	ChannelRef
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
func (c *channel) parseCommand(raw json.RawMessage) (any, error) {
	if !keys[c.Key].writable {
		return nil, fmt.Errorf("channel %s is read-only", c.ChannelRef)
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
	if s, ok := v.(string); ok && c.choices != nil && !slices.Contains(c.choices, s) {
		return nil, fmt.Errorf(
			"value of %s must be one of %s", c.Key, strings.Join(c.choices, ", "),
		)
	}
	return v, nil
}

// view returns the channel as the hub answers with it.
func (c *channel) view(available bool) hub.Channel {
	v := hub.Channel{
		Key: c.Key, Endpoint: c.Endpoint, Unit: keys[c.Key].unit,
		Readable: true, Writable: keys[c.Key].writable, Available: available,
		ChannelState: c.ChannelState,
	}
	if c.limits != nil {
		v.Capabilities = *c.limits
	}
	return v
}
