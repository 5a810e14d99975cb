package hub

import (
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
)

// The parts of a channel in a response.
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
		Value      any                  `json:"value"`
		ObservedAt *string              `json:"observed_at"`
		Desired    any                  `json:"desired"`
		DesiredAt  *string              `json:"desired_at"`
		Status     domain.ChannelStatus `json:"status"`
	}

	// listedChannel is a channel in a list of devices.
	listedChannel struct {
		channelHead
		channelAbilities
	}
	// fullChannel is a channel of a single device.
	fullChannel struct {
		channelHead
		channelAbilities
		channelState
	}
	// commandedChannel is a channel in the answer to a command.
	commandedChannel struct {
		channelHead
		channelState
	}

	// deviceShape is a device in a response. C is listedChannel or fullChannel.
	deviceShape[C any] struct {
		ID           int64   `json:"id"`
		Name         string  `json:"name"`
		Manufacturer string  `json:"manufacturer"`
		Model        string  `json:"model"`
		WakesAt      *string `json:"wakes_at,omitempty"`
		Channels     []C     `json:"channels"`
	}

	// LastEvent is the number of the last event that an answer takes into account.
	devicesResult struct {
		Devices   []deviceShape[listedChannel] `json:"devices"`
		LastEvent *uint64                      `json:"last_event,omitempty"`
	}
	deviceResult struct {
		Device    deviceShape[fullChannel] `json:"device"`
		LastEvent *uint64                  `json:"last_event,omitempty"`
	}
	commandResult struct {
		Channel commandedChannel `json:"channel"`
	}
	windowResult struct {
		Status    string `json:"status"`
		ExpiresIn int    `json:"expires_in"` // seconds
	}
	emptyResult struct{}

	// channelValue is the data of channel.observed and channel.desired events.
	channelValue struct {
		Key      string `json:"key"`
		Endpoint int    `json:"endpoint"`
		Value    any    `json:"value"`
	}
	// channelStatus is the data of channel.status events.
	channelStatus struct {
		Key      string               `json:"key"`
		Endpoint int                  `json:"endpoint"`
		Status   domain.ChannelStatus `json:"status"`
	}
)

func head(c Channel) channelHead {
	h := channelHead{Key: c.Key, Endpoint: c.Endpoint, Kind: c.Key, Available: c.Available}
	if c.Unit != "" {
		h.Unit = &c.Unit
	}
	return h
}

func abilities(c Channel) channelAbilities {
	a := channelAbilities{Readable: c.Readable, Writable: c.Writable, Capabilities: c.Capabilities}
	if a.Capabilities == nil {
		a.Capabilities = struct{}{}
	}
	return a
}

func state(c Channel) channelState {
	return channelState{
		Value: c.Value, ObservedAt: timestamp(c.ObservedAt),
		Desired: c.Desired, DesiredAt: timestamp(c.DesiredAt), Status: c.Status,
	}
}

func listed(c Channel) listedChannel { return listedChannel{head(c), abilities(c)} }

func full(c Channel) fullChannel { return fullChannel{head(c), abilities(c), state(c)} }

func shape[C any](d Device, channel func(Channel) C) deviceShape[C] {
	s := deviceShape[C]{
		ID: d.ID, Name: d.Name, Manufacturer: d.Manufacturer, Model: d.Model,
		WakesAt: timestamp(d.WakesAt), Channels: []C{},
	}
	for _, c := range d.Channels {
		s.Channels = append(s.Channels, channel(c))
	}
	return s
}

func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := domain.FormatTime(t)
	return &s
}

// mustJSON encodes values of this package's own types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hub: encode %T: %v", v, err))
	}
	return raw
}
