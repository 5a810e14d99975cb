package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// The types of records about commands in a hub's event log.
const (
	recordRequested = "command.requested"
	recordAnswered  = "command.answered"
)

// outcomeWithdrawn is the outcome in the record of a command that was recorded and then not sent,
// because its idempotency key was taken. The command that the key stands for has its own records.
const outcomeWithdrawn = "withdrawn"

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
	// Outcome is "accepted", outcomeWithdrawn, or the type of the caller's error, whose message is
	// Message. Both are only in command.answered.
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

// recordRequest appends the record of a command that is about to be sent.
func (c *Commands) recordRequest(ctx context.Context, rec record) error {
	ctx, span := c.cfg.Tracer.Start(ctx, "record command", trace.SpanKindInternal)
	err := c.append(ctx, rec.HubID, rec.requested(c.cfg.Now()))
	span.End(err)
	return err
}

// recordOutcome appends the record of an outcome, in the trace of ctx, which may have ended.
func (c *Commands) recordOutcome(ctx context.Context, outcome record) {
	traced := ctx
	ctx, cancel := c.cleanupContext()
	defer cancel()
	ctx, span := c.cfg.Tracer.Start(
		telemetry.Continue(ctx, traced), "record outcome", trace.SpanKindInternal,
	)
	err := c.append(ctx, outcome.HubID, outcome)
	span.End(err)
	if err != nil {
		c.cfg.Logger.Warn(
			"outcome of a command not recorded", "hub_id", outcome.HubID,
			"command_id", outcome.CommandID, "error", err,
		)
	}
}

// append appends a record to the hub's event log. It waits up to leaderTimeout for a leader of the
// log.
func (c *Commands) append(ctx context.Context, hub domain.HubID, r record) error {
	payload, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("commands: record of %s: %w", r.CommandID, err)
	}
	unsure := false // an earlier attempt may have been stored
	until := time.Now().Add(leaderTimeout)
	for pause := appendPause; ; pause = min(2*pause, maxAppendPause) {
		if unsure && c.isRecorded(ctx, hub, payload) {
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, appendTimeout)
		_, err = c.logs.AppendCommand(attempt, hub, payload)
		cancel()
		if err == nil || !jsapi.IsTemporary(err) || errors.Is(err, nats.ErrConnectionClosed) ||
			ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		unsure = unsure || !errors.Is(err, jsapi.ErrNoStream)
		if !streams.Sleep(ctx, pause) {
			return err
		}
	}
}

// maxRecordsSearched is how many of the newest records isRecorded searches: more than may be in
// flight.
const maxRecordsSearched = 1000

// isRecorded reports whether the hub's event log has a record whose append was not acknowledged. A
// record that is stored even later is stored twice, which History does not show.
func (c *Commands) isRecorded(ctx context.Context, hub domain.HubID, payload []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	newest, err := c.logs.CommandRecords(
		ctx, hub, c.cfg.Now().Add(-2*leaderTimeout), maxRecordsSearched,
	)
	return err == nil &&
		slices.ContainsFunc(newest, func(known domain.LoggedCommand) bool {
			return bytes.Equal(known.Payload, payload)
		})
}
