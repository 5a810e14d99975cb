package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// send records a command, sends it to its hub once, and stores a final answer in reservation, which
// is nil for a command without an idempotency key. The result's cleanup records the outcome.
func (c *Commands) send(
	ctx context.Context, o domain.Origin, command domain.Command, commandID string,
	reservation *idempotency.Reservation,
) result {
	r := result{commandID: commandID, source: fromHub}
	rec := newRecord(o, command, commandID)
	if r.err = c.notSent(c.recordRequest(ctx, rec)); r.err == nil {
		r.channel, r.err = c.hubs.Command(ctx, command, commandID)
		r.err = c.maybeSent(r.err)
		outcome := rec.answered(c.cfg.Now(), r.err)
		r.cleanup = func() { c.recordOutcome(ctx, outcome) }
	}
	if reservation != nil {
		if first := c.remember(ctx, reservation, finalAnswer(r.channel, r.err)); len(first) > 0 {
			r.channel, r.err = restoreAnswer(first)
		}
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

// remember stores the final answer in a reservation, or releases the reservation if a is nil. It
// returns the answer of another holder that has overtaken this call and got an answer; nil
// otherwise.
func (c *Commands) remember(ctx context.Context, r *idempotency.Reservation, a *answer) []byte {
	_, span := c.cfg.Tracer.Start(ctx, "remember answer", trace.SpanKindInternal)
	defer span.End(nil)
	var final []byte
	var err error
	if a != nil {
		if final, err = json.Marshal(a); err != nil {
			c.cfg.Logger.Error("answer not encoded", "command_id", r.ID, "error", err)
		}
	}
	ctx, cancel := c.cleanupContext()
	defer cancel()
	first, err := c.cfg.Keys.Finish(ctx, r, final)
	if err != nil {
		c.cfg.Logger.Warn(
			"answer not remembered; a repeated command goes to the hub again",
			"command_id", r.ID, "error", err,
		)
	}
	return first
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

// cleanupContext returns the context for storing the outcome of a call, whose own context may have
// ended.
func (c *Commands) cleanupContext() (context.Context, context.CancelFunc) {
	if c.isAborted() {
		return context.WithTimeout(context.Background(), abortTimeout)
	}
	return context.WithTimeout(context.Background(), cleanupTimeout)
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
		_, err = c.logs.AppendCommand(attempt, hub, payload, nil)
		cancel()
		if err == nil || !jsapi.IsTemporary(err) || ctx.Err() != nil || time.Now().After(until) {
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
	newest, err := c.logs.Commands(ctx, hub, c.cfg.Now().Add(-2*leaderTimeout), maxRecordsSearched)
	return err == nil &&
		slices.ContainsFunc(newest, func(known []byte) bool { return bytes.Equal(known, payload) })
}
