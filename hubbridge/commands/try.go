package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

// try sends a command to its hub once, with a record in the hub's log before, and remembers in r, unless that is nil, what settled the matter. What
// is left to do, when the caller has its answer, is in after: the record of what came of it.
func (c *Commands) try(ctx context.Context, o domain.Origin, command domain.Command, id string, r *reservation) (f landing) {
	f.id, f.answer = id, answerHub
	told := newRecord(o, command, id)
	if f.err = c.appendRequest(ctx, told); f.err == nil {
		f.channel, f.err = c.hubs.Command(ctx, command, id)
		outcome := told.answered(c.cfg.Now(), f.err)
		f.after = func() { c.appendOutcome(ctx, outcome) }
	}
	if r != nil {
		if first := c.remember(ctx, r, settling(f.channel, f.err)); first != nil {
			f.channel, f.err = first.give()
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

// remember settles a reservation.
func (c *Commands) remember(ctx context.Context, r *reservation, a *answer) *answer {
	_, span := c.cfg.Tracer.Start(ctx, "remember answer", trace.SpanKindInternal)
	defer span.End(nil)
	return c.settle(r, a)
}

// appendOutcome puts what came of a command into the hub's log. flown is the context of its flight, which is over.
func (c *Commands) appendOutcome(flown context.Context, outcome record) {
	ctx, cancel := c.aftermath()
	defer cancel()
	ctx, span := c.cfg.Tracer.Start(telemetry.Continue(ctx, flown), "record outcome", trace.SpanKindInternal)
	err := c.append(ctx, outcome.HubID, outcome)
	span.End(err)
	if err != nil {
		c.cfg.Log.Warn("the outcome of a command is missing in the hub's log", "hub_id", outcome.HubID, "command_id", outcome.CommandID, "error", err)
	}
}

// aftermath gives the context of what is kept of a command, also when its time is over or its flight was ended.
func (c *Commands) aftermath() (context.Context, context.CancelFunc) {
	if c.ctx.Err() != nil {
		return context.WithTimeout(context.Background(), closingTime)
	}
	return context.WithTimeout(context.Background(), storageTime)
}

// report writes a command's line in the log and counts it.
func (c *Commands) report(ctx context.Context, o domain.Origin, command domain.Command, f landing, took time.Duration) {
	outcome := outcomeOf(f.err)
	c.metrics.observe(outcome, took)
	attrs := []slog.Attr{
		slog.String("request_id", o.RequestID), slog.String("hub_id", string(command.HubID)), slog.Int64("device_id", command.DeviceID),
		slog.String("key", command.Key), slog.Int64("endpoint", command.Endpoint), slog.String("command_id", f.id),
		slog.String("outcome", outcome), slog.String("answer", f.answer), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if f.err != nil {
		attrs = append(attrs, slog.String("error", f.err.Error()))
	}
	c.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "command", attrs...)
}

// append puts a record into the hub's log.
func (c *Commands) append(ctx context.Context, hub domain.HubID, r record) error {
	payload, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("commands: record of %s: %w", r.CommandID, err)
	}
	_, err = c.logs.AppendCommand(ctx, hub, payload, nil)
	return err
}
