package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hubcloud/domain"
)

// try sends a command to its hub once, with a record in the hub's log before and after, and remembers in r, unless that is nil, what settled the
// matter.
func (c *Commands) try(ctx context.Context, o domain.Origin, command domain.Command, id string, r *reservation) (domain.Channel, error) {
	began := time.Now()
	told := newRecord(o, command, id)
	err := c.append(ctx, command.HubID, told.requested(c.cfg.Now()))
	var channel domain.Channel
	sent := err == nil
	if sent {
		channel, err = c.hubs.Command(ctx, command, id)
	}
	c.report(ctx, o, command, id, err, time.Since(began))

	// The outcome is kept though the flight may be ended.
	patience := storageTime
	if ctx.Err() != nil {
		patience = closingTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	var records sync.WaitGroup
	if sent {
		records.Go(func() {
			if err := c.append(ctx, command.HubID, told.answered(c.cfg.Now(), err)); err != nil {
				c.cfg.Log.Warn("the outcome of a command is missing in the hub's log", "hub_id", command.HubID, "command_id", id, "error", err)
			}
		})
	}
	defer records.Wait()
	if r == nil {
		return channel, err
	}
	if first := c.settle(ctx, r, settling(channel, err)); first != nil {
		return first.give()
	}
	return channel, err
}

// report writes a command's line in the log and counts it.
func (c *Commands) report(ctx context.Context, o domain.Origin, command domain.Command, id string, err error, took time.Duration) {
	outcome := outcomeOf(err)
	c.metrics.sent.WithLabelValues(outcome).Inc()
	attrs := []slog.Attr{
		slog.String("request_id", o.RequestID), slog.String("hub_id", string(command.HubID)), slog.Int64("device_id", command.DeviceID),
		slog.String("key", command.Key), slog.Int64("endpoint", command.Endpoint), slog.String("command_id", id),
		slog.String("outcome", outcome), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
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
