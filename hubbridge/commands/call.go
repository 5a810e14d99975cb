package commands

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams/once"
	"hubcloud/streams/telemetry"
)

// callKey identifies concurrent duplicates, which share one call.
type callKey struct {
	// reservation is the name of the reservation; "" for a command without an idempotency key.
	reservation string
	// fingerprint is the same for the same command.
	fingerprint string
}

// call is a command in flight. Its result may be read once done is closed.
type call struct {
	done   chan struct{}
	cancel context.CancelFunc
	result
}

// result is the outcome of a call.
type result struct {
	channel domain.Channel
	err     error
	// commandID is the ID under which the hub knows the command; "" if the command was rejected
	// before it had one.
	commandID string
	// source is where the answer comes from; "" if the command was not sent.
	source answerSource
	// cleanup runs after the caller has the answer; nil for nothing.
	cleanup func()
}

// answerSource is the value of answer in the log line of a command.
type answerSource string

const (
	fromHub    answerSource = "hub"
	fromMemory answerSource = "remembered" // under the idempotency key
	fromShared answerSource = "shared"     // the call of a concurrent duplicate
)

// join returns the call of a concurrent duplicate, with shared set, or starts a call, which calls
// release when it ends. A call outlives the request that started it: duplicates may wait for it,
// and its outcome must be stored.
func (c *Commands) join(
	ctx context.Context, o domain.Origin, command domain.Command, release func(),
) (joined *call, shared bool, err error) {
	key := callKey{once.Name(command.OrgID, command.IdempotencyKey), fingerprint(command)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, ErrClosed
	}
	if running := c.byKey[key]; running != nil {
		c.metrics.shared.Inc()
		return running, true, nil
	}
	ctx, cancel := context.WithCancel(telemetry.Continue(context.Background(), ctx))
	started := &call{done: make(chan struct{}), cancel: cancel}
	c.calls[started] = true
	if key.reservation != "" {
		c.byKey[key] = started
	}
	c.metrics.underWay.Inc()
	c.running.Go(func() {
		defer release()
		defer cancel()
		c.runCall(ctx, started, key, o, command)
	})
	return started, false, nil
}

// runCall runs a call to its end: it executes the command, reports it, publishes the result, and
// then cleans up. ctx does not end with the caller's request, but belongs to its trace.
func (c *Commands) runCall(
	ctx context.Context, call *call, key callKey, o domain.Origin, command domain.Command,
) {
	began := time.Now()
	ctx, span := c.startSpan(telemetry.WithRequest(ctx, o.RequestID), o, command)
	call.result = c.execute(ctx, key, o, command)
	c.report(ctx, o, command, call.result, time.Since(began))
	endSpan(span, call.result)

	c.mu.Lock()
	delete(c.calls, call)
	if c.byKey[key] == call {
		delete(c.byKey, key)
	}
	c.mu.Unlock()
	c.metrics.underWay.Dec()
	close(call.done)
	if call.cleanup != nil {
		call.cleanup()
	}
}

func (c *Commands) startSpan(
	ctx context.Context, o domain.Origin, command domain.Command,
) (context.Context, telemetry.Span) {
	ctx, span := c.cfg.Tracer.Start(ctx, "command", trace.SpanKindInternal)
	if span.On() {
		span.Set(
			telemetry.KeyHubID.String(string(command.HubID)),
			telemetry.KeyRequestID.String(o.RequestID), telemetry.KeyOrgID.String(command.OrgID),
			attribute.Int64("hubcloud.device_id", command.DeviceID),
			attribute.String("hubcloud.channel_key", command.Key),
		)
	}
	return ctx, span
}

func endSpan(span telemetry.Span, r result) {
	if span.On() {
		span.Set(
			telemetry.KeyCommandID.String(r.commandID),
			telemetry.KeyOutcome.String(domain.OutcomeOf(r.err, outcomeAccepted)),
			attribute.String("hubcloud.answer", string(r.source)),
		)
	}
	span.End(r.err)
}

// fingerprint is the same for commands to the same channel with the same value.
func fingerprint(c domain.Command) string {
	return once.Fingerprint(
		fmt.Appendf(nil, "%s\n%d\n%s\n%d\n%s", c.HubID, c.DeviceID, c.Key, c.Endpoint, c.Value),
	)
}
