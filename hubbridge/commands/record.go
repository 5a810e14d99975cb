package commands

import (
	"encoding/json"
	"errors"
	"time"

	"hubcloud/domain"
)

// The types of records about commands in a hub's event log.
const (
	recordRequested = "command.requested"
	recordAnswered  = "command.answered"
)

// record is the entry about a command in a hub's event log: before the command is sent, and with
// its outcome. It is stored as long as the hub's events, and read by other versions of the service.
type record struct {
	Type      string          `json:"type"`
	CommandID string          `json:"command_id"`
	OrgID     string          `json:"org_id"`
	HubID     domain.HubID    `json:"hub_id"`
	DeviceID  int64           `json:"device_id"`
	Key       string          `json:"key"`
	Endpoint  int64           `json:"endpoint"`
	Value     json.RawMessage `json:"value"`
	// Time is the cloud's time, in domain.TimeLayout.
	Time      string       `json:"time"`
	Actor     domain.Actor `json:"actor"`
	RequestID string       `json:"request_id,omitempty"`
	// Outcome is "accepted" or the type of the caller's error, whose message is Message. Both are
	// only in command.answered.
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
}

func newRecord(o domain.Origin, c domain.Command, commandID string) record {
	return record{
		CommandID: commandID, OrgID: c.OrgID, HubID: c.HubID, DeviceID: c.DeviceID, Key: c.Key,
		Endpoint: c.Endpoint, Value: c.Value,
		Actor: o.Actor, RequestID: o.RequestID,
	}
}

func (r record) requested(now time.Time) record {
	r.Type, r.Time = recordRequested, domain.FormatTime(now)
	return r
}

func (r record) answered(now time.Time, err error) record {
	r.Type, r.Time = recordAnswered, domain.FormatTime(now)
	r.Outcome = domain.OutcomeOf(err, outcomeAccepted)
	var apiError *domain.Error
	if errors.As(err, &apiError) {
		r.Message = apiError.Message
	}
	return r
}
