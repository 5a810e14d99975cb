package commands

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"hubcloud/domain"
)

// The types of the records about commands in a hub's log.
const (
	recordRequested = "command.requested"
	recordAnswered  = "command.answered"
)

// record is what a hub's log says of a command: that it is about to be sent, or what came of that.
// It is kept as long as the hub's events, and read by other versions of the service.
type record struct {
	Type      string          `json:"type"`
	CommandID string          `json:"command_id"`
	OrgID     string          `json:"org_id"`
	HubID     domain.HubID    `json:"hub_id"`
	DeviceID  int64           `json:"device_id"`
	Key       string          `json:"key"`
	Endpoint  int64           `json:"endpoint"`
	Value     json.RawMessage `json:"value"`
	// Time is the cloud's, in domain.TimeLayout.
	Time      string       `json:"time"`
	Actor     domain.Actor `json:"actor"`
	RequestID string       `json:"request_id,omitempty"`
	// Outcome is `accepted`, or the type of the error that the caller was answered; only in
	// command.answered, as Message.
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
}

func newRecord(o domain.Origin, c domain.Command, id string) record {
	return record{
		CommandID: id, OrgID: c.OrgID, HubID: c.HubID, DeviceID: c.DeviceID, Key: c.Key,
		Endpoint: c.Endpoint, Value: c.Value,
		Actor: o.Actor, RequestID: o.RequestID,
	}
}

func (r record) requested(now time.Time) record {
	r.Type, r.Time = recordRequested, domain.FormatTime(now)
	return r
}

func (r record) answered(now time.Time, err error) record {
	r.Type, r.Time, r.Outcome = recordAnswered, domain.FormatTime(now), outcomeOf(err)
	var refusal *domain.Error
	if errors.As(err, &refusal) {
		r.Message = refusal.Message
	}
	return r
}

// outcomeOf says in a word what came of a command.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeAccepted
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return outcomeCanceled
	default:
		return string(domain.CodeOf(err))
	}
}
