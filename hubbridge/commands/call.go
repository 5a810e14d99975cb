package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/streams/jsapi"
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
	// source is where the answer comes from; "" if the command was rejected before.
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

// Send sends a command to its hub and returns the channel from the hub's answer, with the command
// pending. The caller must have validated the value and the idempotency key.
//
// Errors are ErrClosed; ctx's, after which the command may still be in flight; those of storage; or
// a *domain.Error: rate_limited at once when too many calls are in flight or the organization has
// sent all its commands of the hour; idempotency_conflict for a key of another command;
// service_unavailable when storage does not answer or the disk is full; hub_offline; hub_timeout;
// hub_error; hub_unavailable; and the hub's not_found, invalid_request and command_refused.
func (c *Commands) Send(
	ctx context.Context, o domain.Origin, command domain.Command,
) (domain.Channel, error) {
	began := time.Now()
	release, err := c.admit(command)
	if err != nil {
		c.metrics.commands.WithLabelValues(domain.OutcomeOf(err, outcomeAccepted)).Inc()
		return domain.Channel{}, err
	}
	call, shared, err := c.join(ctx, o, command, release)
	if err != nil {
		release()
		return domain.Channel{}, err
	}
	if shared {
		defer release()
	}
	select {
	case <-call.done:
		if shared {
			r := call.result
			r.source = fromShared
			c.report(ctx, o, command, r, time.Since(began))
		}
		return call.channel, call.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return domain.Channel{}, domain.UnavailableBecause(
				ctx.Err(),
				"the command is still under way, and may reach the hub: send it again with the "+
					"same Idempotency-Key for its answer",
			)
		}
		return domain.Channel{}, ctx.Err()
	}
}

// admit takes a slot for a command, and one of the commands that its organization may send within
// an hour. Only the slot is released.
func (c *Commands) admit(command domain.Command) (release func(), err error) {
	release, err = c.cfg.Limiter.Acquire(command.OrgID, command.HubID)
	if err != nil {
		return nil, err
	}
	if wait, ok := c.sent.Take(command.OrgID, c.cfg.Now()); !ok {
		release()
		return nil, domain.RateLimited(
			wait,
			"the organization has sent %d commands within an hour; no more are allowed (--commands-per-org)",
			c.sent.Most(),
		)
	}
	return release, nil
}

// join returns the call of a concurrent duplicate, with shared set, or starts a call, which calls
// release when it ends.
func (c *Commands) join(
	ctx context.Context, o domain.Origin, command domain.Command, release func(),
) (joined *call, shared bool, err error) {
	key := callKey{idempotency.Name(command.OrgID, command.IdempotencyKey), fingerprint(command)}
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

// execute returns the answer remembered under the command's idempotency key, or reserves the key
// and sends the command. Its time limit covers two calls one after the other: that of another
// holder of the key, which execute may have to wait for, and its own. Each takes at most the hub's
// timeout and the wait for storage.
func (c *Commands) execute(
	ctx context.Context, key callKey, o domain.Origin, command domain.Command,
) result {
	ctx, cancel := context.WithTimeout(ctx, 2*(c.cfg.HubTimeout+leaderTimeout))
	defer cancel()
	if key.reservation == "" {
		if err := c.mayBegin(ctx, command.HubID); err != nil {
			return result{err: c.notSent(err)}
		}
		return c.send(ctx, o, command, ulid.Make().String(), nil)
	}
	r, err := c.reserve(ctx, key, command)
	if err != nil {
		return result{err: c.notSent(err)}
	}
	if len(r.Answer) == 0 {
		return c.send(ctx, o, command, r.ID, r)
	}
	c.metrics.repeated.Inc()
	channel, err := restoreAnswer(r.Answer)
	return result{channel: channel, err: err, commandID: r.ID, source: fromMemory}
}

func (c *Commands) reserve(
	ctx context.Context, key callKey, command domain.Command,
) (*idempotency.Reservation, error) {
	ctx, span := c.cfg.Tracer.Start(ctx, "reserve idempotency key", trace.SpanKindInternal)
	r, err := c.cfg.Keys.Reserve(ctx, idempotency.Request{
		OrgID: command.OrgID, Name: key.reservation, Fingerprint: key.fingerprint,
		Hold:  c.cfg.HubTimeout + holdMargin,
		Check: func(ctx context.Context) error { return c.mayBegin(ctx, command.HubID) },
	})
	span.End(err)
	return r, err
}

// commandBytes is the most space on disk that a command takes: two records and a reservation.
const commandBytes = 4 << 10

// mayBegin returns an error if the hub is offline or the disk has no space for the records of a
// command.
func (c *Commands) mayBegin(ctx context.Context, hub domain.HubID) error {
	if err := c.hubs.CheckOnline(ctx, hub); err != nil {
		return err
	}
	return c.cfg.Admit(commandBytes)
}

// notSent translates an error of a command that was not sent: a temporary fault is
// service_unavailable, any other error stays what it is.
func (c *Commands) notSent(err error) error {
	return c.temporary(
		err, "the command could not be recorded at the moment; it was not sent to the hub",
	)
}

// maybeSent is notSent for a command that may have reached the hub.
func (c *Commands) maybeSent(err error) error {
	return c.temporary(
		err,
		"the command could not be finished; the hub may have it: send it again with the same "+
			"Idempotency-Key",
	)
}

func (c *Commands) temporary(err error, message string) error {
	var apiError *domain.Error
	if err != nil && c.isAborted() && !errors.As(err, &apiError) {
		return domain.UnavailableBecause(err, "%s", message)
	}
	return jsapi.Unavailable(err, "%s", message)
}

// fingerprint is the same for commands to the same channel with the same value.
func fingerprint(c domain.Command) string {
	return idempotency.Fingerprint(
		fmt.Appendf(nil, "%s\n%d\n%s\n%d\n%s", c.HubID, c.DeviceID, c.Key, c.Endpoint, c.Value),
	)
}
