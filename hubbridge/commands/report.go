package commands

import (
	"context"
	"log/slog"
	"time"

	"hubcloud/domain"
)

// report logs a command with its answer and counts it.
func (c *Commands) report(
	ctx context.Context, o domain.Origin, command domain.Command, r result, took time.Duration,
) {
	outcome := domain.OutcomeOf(r.err, outcomeAccepted)
	c.metrics.observe(outcome, took)
	attrs := []slog.Attr{
		slog.String("request_id", o.RequestID),
		slog.String("hub_id", string(command.HubID)),
		slog.Int64("device_id", command.DeviceID),
		slog.String("key", command.Key),
		slog.Int64("endpoint", command.Endpoint),
		slog.String("command_id", r.commandID),
		slog.String("outcome", outcome),
		slog.String("answer", string(r.source)),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if r.err != nil {
		attrs = append(attrs, slog.String("error", r.err.Error()))
	}
	c.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "command", attrs...)
}
