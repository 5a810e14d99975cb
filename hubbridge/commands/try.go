package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

// try sends a command to its hub once, with a record in the hub's log before, and remembers in r,
// unless that is nil, what settled the matter. What is left to do, when the caller has its answer,
// is in after: the record of what came of it.
func (c *Commands) try(
	ctx context.Context, o domain.Origin, command domain.Command, id string,
	r *idempotency.Reservation,
) (f landing) {
	f.id, f.answer = id, answerHub
	told := newRecord(o, command, id)
	if f.err = c.unsent(c.appendRequest(ctx, told)); f.err == nil {
		f.channel, f.err = c.hubs.Command(ctx, command, id)
		f.err = c.maybeSent(f.err)
		outcome := told.answered(c.cfg.Now(), f.err)
		f.after = func() { c.appendOutcome(ctx, outcome) }
	}
	if r != nil {
		if first := c.remember(ctx, r, settling(f.channel, f.err)); len(first) > 0 {
			f.channel, f.err = give(first)
		}
	}
	return f
}

// appendRequest puts a command that is about to be sent into the hub's log.
func (c *Commands) appendRequest(ctx context.Context, told record) error {
	ctx, span := c.cfg.Tracer.Start(ctx, "record command", trace.SpanKindInternal)
	err := c.append(ctx, told.HubID, told.requested(c.cfg.Now()))
	span.End(err)
	return err
}

// remember settles a reservation. It returns the answer of another holder that has taken over and
// got one, otherwise nothing.
func (c *Commands) remember(ctx context.Context, r *idempotency.Reservation, a *answer) []byte {
	_, span := c.cfg.Tracer.Start(ctx, "remember answer", trace.SpanKindInternal)
	defer span.End(nil)
	var settled []byte
	var err error
	if a != nil {
		if settled, err = json.Marshal(a); err != nil {
			c.cfg.Log.Error("answer not encoded", "command_id", r.ID, "error", err)
		}
	}
	ctx, cancel := c.aftermath()
	defer cancel()
	first, err := c.cfg.Keys.Settle(ctx, r, settled)
	if err != nil {
		c.cfg.Log.Warn(
			"answer not remembered; sent again the command goes to the hub again",
			"command_id", r.ID, "error", err,
		)
	}
	return first
}

// appendOutcome puts what came of a command into the hub's log. flown is the context of its flight,
// which is over.
func (c *Commands) appendOutcome(flown context.Context, outcome record) {
	ctx, cancel := c.aftermath()
	defer cancel()
	ctx, span := c.cfg.Tracer.Start(
		telemetry.Continue(ctx, flown), "record outcome", trace.SpanKindInternal,
	)
	err := c.append(ctx, outcome.HubID, outcome)
	span.End(err)
	if err != nil {
		c.cfg.Log.Warn(
			"the outcome of a command is missing in the hub's log", "hub_id", outcome.HubID,
			"command_id", outcome.CommandID, "error", err,
		)
	}
}

// aftermath gives the context of what is kept of a command, also when its time is over or its
// flight was ended.
func (c *Commands) aftermath() (context.Context, context.CancelFunc) {
	if c.ctx.Err() != nil {
		return context.WithTimeout(context.Background(), closingTime)
	}
	return context.WithTimeout(context.Background(), storageTime)
}

// report writes a command's line in the log and counts it.
func (c *Commands) report(
	ctx context.Context, o domain.Origin, command domain.Command, f landing, took time.Duration,
) {
	outcome := outcomeOf(f.err)
	c.metrics.observe(outcome, took)
	attrs := []slog.Attr{
		slog.String(
			"request_id", o.RequestID,
		), slog.String("hub_id", string(command.HubID)), slog.Int64("device_id", command.DeviceID),
		slog.String(
			"key", command.Key,
		), slog.Int64("endpoint", command.Endpoint), slog.String("command_id", f.id),
		slog.String("outcome", outcome), slog.String("answer", f.answer),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if f.err != nil {
		attrs = append(attrs, slog.String("error", f.err.Error()))
	}
	c.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "command", attrs...)
}

// append puts a record into the hub's log. While the log has no leader it waits for one, at most
// for patience and until ctx ends.
func (c *Commands) append(ctx context.Context, hub domain.HubID, r record) error {
	payload, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("commands: record of %s: %w", r.CommandID, err)
	}
	unsure := false
	until := time.Now().Add(patience)
	for pause := appendPause; ; pause = min(2*pause, maxAppendPause) {
		if unsure && c.recorded(ctx, hub, payload) {
			return nil
		}
		try, cancel := context.WithTimeout(ctx, appendTime)
		_, err = c.logs.AppendCommand(try, hub, payload, nil)
		cancel()
		if err == nil || !streams.Passing(err) || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		unsure = unsure || !errors.Is(err, streams.ErrNoStream)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// recorded reports whether a hub's log has a record whose append got no answer. One that is stored
// later still is there twice, which History does not show.
func (c *Commands) recorded(ctx context.Context, hub domain.HubID, payload []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, appendTime)
	defer cancel()
	newest, err := c.logs.Commands(ctx, hub, c.cfg.Now().Add(-2*patience), recordsLookedAt)
	return err == nil &&
		slices.ContainsFunc(newest, func(known []byte) bool { return bytes.Equal(known, payload) })
}

// recordsLookedAt is among how many of the newest records one is looked for whose append got no
// answer: more than may be under way.
const recordsLookedAt = 1000
