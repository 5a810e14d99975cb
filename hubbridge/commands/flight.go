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
	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

// flightKey tells flights that callers may share.
type flightKey struct {
	// name is that of the reservation.
	name string
	// request is what the command asks.
	request string
}

// flight is a command on its way. What landed is there once done is closed.
type flight struct {
	done chan struct{}
	landing
}

// Where the answer to a command comes from, as its log line says: from the hub, what was remembered
// under its key, or the same command that was under way. Empty for one that was refused before.
const (
	answerHub        = "hub"
	answerRemembered = "remembered"
	answerShared     = "shared"
)

// landing is what a caller gets of a flight.
type landing struct {
	channel domain.Channel
	err     error
	// id is that under which the hub knows the command; empty when it was refused before it had
	// one.
	id string
	// answer says where the answer comes from.
	answer string
	// after is what is left to do; nil is nothing.
	after func()
}

// Send sends a command, whose value and idempotency key have been checked, and gives the channel as
// the hub answered, with the command pending. o says who sent it, and when. Errors are
// *domain.Error: rate_limited at once when too many are under way, idempotency_conflict for a key
// that stands for another command, hub_offline, hub_timeout, hub_error, hub_unavailable, and the
// hub's not_found, invalid_request and command_refused; ErrClosed; those of storage; and ctx's
// error, after which the command may still be under way.
func (c *Commands) Send(
	ctx context.Context, o domain.Origin, command domain.Command,
) (domain.Channel, error) {
	began := time.Now()
	f, shared, release, err := c.board(ctx, o, command)
	if err != nil {
		return domain.Channel{}, err
	}
	defer release()
	select {
	case <-f.done:
		if shared {
			f := f.landing
			f.answer = answerShared
			c.report(ctx, o, command, f, time.Since(began))
		}
		return f.channel, f.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return domain.Channel{}, errors.Join(domain.Unavailable(
				"the command is still under way, and may reach the hub: send it again with the "+
					"same Idempotency-Key for its answer",
			), ctx.Err())
		}
		return domain.Channel{}, ctx.Err()
	}
}

// board returns the flight of a command: one that is under way with the same key and command, which
// is then shared, or its own. What it takes of the bounds is given back by release when the caller
// has gone, for a shared flight, and by the flight itself for its own.
func (c *Commands) board(
	ctx context.Context, o domain.Origin, command domain.Command,
) (f *flight, shared bool, release func(), err error) {
	leave, err := c.admit(command)
	if err != nil {
		c.metrics.commands.WithLabelValues(outcomeOf(err)).Inc()
		return nil, false, nil, err
	}
	key := flightKey{idempotency.Name(command.OrgID, command.IdempotencyKey), fingerprint(command)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		leave()
		return nil, false, nil, ErrClosed
	}
	if f := c.flights[key]; f != nil {
		c.metrics.shared.Inc()
		return f, true, leave, nil
	}
	f = &flight{done: make(chan struct{})}
	if key.name != "" {
		c.flights[key] = f
	}
	c.metrics.underWay.Inc()
	c.group.Go(func() {
		defer leave()
		began := time.Now()
		flying, span := c.takeOff(ctx, o, command)
		f.landing = c.fly(flying, key, o, command)
		c.report(flying, o, command, f.landing, time.Since(began))
		c.endSpan(span, f.landing)
		if key.name != "" {
			c.mu.Lock()
			delete(c.flights, key)
			c.mu.Unlock()
		}
		c.metrics.underWay.Dec()
		close(f.done)
		if f.after != nil {
			f.after()
		}
	})
	return f, false, func() {}, nil
}

// admit takes a place for a command, and one of what its organization may send within an hour.
func (c *Commands) admit(command domain.Command) (leave func(), err error) {
	leave, err = c.cfg.Limiter.Acquire(command.OrgID, command.HubID)
	if err != nil {
		return nil, err
	}
	if wait, ok := c.sent.Take(command.OrgID, time.Now()); !ok {
		leave()
		refused := domain.Errorf(
			domain.CodeRateLimited,
			"the organization has sent %d commands within an hour; no more are allowed (--commands-per-org)",
			c.sent.Most(),
		)
		refused.RetryAfter = wait
		return nil, refused
	}
	return leave, nil
}

// takeOff gives the context of a flight: it does not end with its caller's, but belongs to the same
// request and trace.
func (c *Commands) takeOff(
	caller context.Context, o domain.Origin, command domain.Command,
) (context.Context, telemetry.Span) {
	ctx := telemetry.WithRequest(telemetry.Continue(c.ctx, caller), o.RequestID)
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

func (c *Commands) endSpan(span telemetry.Span, f landing) {
	if span.On() {
		span.Set(
			telemetry.KeyCommandID.String(f.id), telemetry.KeyOutcome.String(outcomeOf(f.err)),
			attribute.String("hubcloud.answer", f.answer),
		)
	}
	span.End(f.err)
}

// fly sees a command through. It takes at most the time of another holder, the hub's own, and what
// storage takes.
func (c *Commands) fly(
	ctx context.Context, key flightKey, o domain.Origin, command domain.Command,
) landing {
	ctx, cancel := context.WithTimeout(ctx, 2*(c.cfg.HubTimeout+patience))
	defer cancel()
	if key.name == "" {
		if err := c.mayBegin(ctx, command.HubID); err != nil {
			return landing{err: c.unsent(err)}
		}
		return c.try(ctx, o, command, ulid.Make().String(), nil)
	}
	reserving, span := c.cfg.Tracer.Start(ctx, "reserve idempotency key", trace.SpanKindInternal)
	r, err := c.cfg.Keys.Reserve(reserving, idempotency.Request{
		OrgID: command.OrgID, Name: key.name, Fingerprint: key.request,
		Hold:  c.cfg.HubTimeout + holdSlack,
		Check: func(ctx context.Context) error { return c.mayBegin(ctx, command.HubID) },
	})
	span.End(err)
	if err != nil {
		return landing{err: c.unsent(err)}
	}
	if len(r.Answer) == 0 {
		return c.try(ctx, o, command, r.ID, r)
	}
	c.metrics.repeated.Inc()
	channel, err := give(r.Answer)
	return landing{channel: channel, err: err, id: r.ID, answer: answerRemembered}
}

// unsent returns service_unavailable for a fault that passes and kept a command from being sent,
// and any other error as it is.
func (c *Commands) unsent(err error) error {
	return c.passing(
		err, "the command could not be recorded at the moment; it was not sent to the hub",
	)
}

// maybeSent is unsent for a command that the hub may have.
func (c *Commands) maybeSent(err error) error {
	return c.passing(
		err,
		"the command could not be seen through; the hub may have it: send it again with the same Idempotency-Key",
	)
}

func (c *Commands) passing(err error, message string) error {
	var told *domain.Error
	if err != nil && c.ctx.Err() != nil && !errors.As(err, &told) { // Close has ended it
		return fmt.Errorf("%w: %w", domain.Unavailable("%s", message), err)
	}
	return streams.Unavailable(err, "%s", message)
}

// fingerprint is the same for commands that ask the same: of the same channel, with the same value
// once decoded.
func fingerprint(c domain.Command) string {
	return idempotency.Fingerprint(
		fmt.Appendf(nil, "%s\n%d\n%s\n%d\n%s", c.HubID, c.DeviceID, c.Key, c.Endpoint, c.Value),
	)
}

// commandBytes is what a command takes on disk at most: its two records, and its reservation.
const commandBytes = 4 << 10

// mayBegin returns why a command cannot be sent now: its hub is offline, or there is no room for
// its records.
func (c *Commands) mayBegin(ctx context.Context, hub domain.HubID) error {
	if err := c.hubs.MustBeOnline(ctx, hub); err != nil {
		return err
	}
	return c.cfg.Admit(commandBytes)
}
