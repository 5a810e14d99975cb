package commands

import (
	"encoding/json"
	"errors"
	"fmt"

	"hubcloud/domain"
)

// answer is what settled the matter of a command, as it is kept: the channel as the hub gave it, or
// the hub's refusal.
type answer struct {
	Channel *channel    `json:"channel,omitempty"`
	Code    domain.Code `json:"code,omitempty"`
	Message string      `json:"message,omitempty"`
}

// channel is a channel in the answer to a command.
type channel struct {
	Key        string               `json:"key"`
	Endpoint   int64                `json:"endpoint"`
	Kind       string               `json:"kind"`
	Unit       *string              `json:"unit"`
	Available  bool                 `json:"available"`
	Value      json.RawMessage      `json:"value,omitempty"`
	ObservedAt *string              `json:"observed_at,omitempty"`
	Desired    json.RawMessage      `json:"desired,omitempty"`
	DesiredAt  *string              `json:"desired_at,omitempty"`
	Status     domain.ChannelStatus `json:"status"`
}

// settling gives the answer to remember; nil when what happened settles nothing: the same command
// sent again may have another outcome.
func settling(c domain.Channel, err error) *answer {
	if err == nil {
		return &answer{Channel: &channel{
			Key: c.Key, Endpoint: c.Endpoint, Kind: c.Kind, Unit: c.Unit, Available: c.Available,
			Value: c.Value, ObservedAt: c.ObservedAt, Desired: c.Desired, DesiredAt: c.DesiredAt,
			Status: c.Status,
		}}
	}
	var refusal *domain.Error
	if !errors.As(err, &refusal) {
		return nil
	}
	switch refusal.Code {
	case domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeCommandRefused:
		return &answer{Code: refusal.Code, Message: refusal.Message}
	default:
		return nil
	}
}

// give returns a remembered answer as it was given the first time.
func give(remembered []byte) (domain.Channel, error) {
	var a answer
	if err := json.Unmarshal(remembered, &a); err != nil {
		return domain.Channel{}, fmt.Errorf("commands: unreadable answer: %w", err)
	}
	c := a.Channel
	if c == nil {
		return domain.Channel{}, &domain.Error{Code: a.Code, Message: a.Message}
	}
	return domain.Channel{
		Key: c.Key, Endpoint: c.Endpoint, Kind: c.Kind, Unit: c.Unit, Available: c.Available,
		Value: c.Value, ObservedAt: c.ObservedAt, Desired: c.Desired, DesiredAt: c.DesiredAt,
		Status: c.Status,
	}, nil
}
