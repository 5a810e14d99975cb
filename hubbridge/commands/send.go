package commands

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/domain"
	"hubcloud/streams/once"
)

// Send sends a command to its hub and returns it with the channel from the hub's answer, in which
// the command is pending. After an error it returns the ID, if the command had one. The caller must
// have validated the value and the idempotency key.
//
// Errors are ErrClosed; ctx's, after which the command may still be in flight; errors of storage;
// or a *domain.Error: rate_limited at once when too many calls are in flight or the organization
// has sent all its commands of the hour; idempotency_conflict for a key of another command;
// service_unavailable when storage does not answer or the disk is full; hub_offline; hub_timeout;
// hub_error; hub_unavailable; and the hub's not_found, invalid_request and command_refused.
func (c *Commands) Send(
	ctx context.Context, o domain.Origin, command domain.Command,
) (domain.SentCommand, error) {
	began := time.Now()
	release, err := c.admit(command)
	if err != nil {
		c.metrics.commands.WithLabelValues(domain.OutcomeOf(err, outcomeAccepted)).Inc()
		return domain.SentCommand{}, err
	}
	call, shared, err := c.join(ctx, o, command, release)
	if err != nil {
		release()
		return domain.SentCommand{}, err
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
		return domain.SentCommand{
			ID: call.commandID, Channel: call.channel,
			Replayed: shared || call.source == fromMemory,
		}, call.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return domain.SentCommand{}, domain.UnavailableBecause(
				ctx.Err(),
				"the command is still under way, and may reach the hub: send it again with the "+
					"same Idempotency-Key for its answer",
			)
		}
		return domain.SentCommand{}, ctx.Err()
	}
}

// admit takes a slot for a command, and one of the commands that its organization may send within
// an hour. Only the slot is released.
func (c *Commands) admit(command domain.Command) (release func(), err error) {
	release, err = c.cfg.Calls.Take(CallTo(command.OrgID, command.HubID), 1)
	if err != nil {
		return nil, err
	}
	if a := c.sent.Take(command.OrgID, c.cfg.Now()); !a.Granted {
		release()
		return nil, domain.RateLimited(
			a.Next,
			"the organization has sent %d commands within an hour; no more are allowed",
			c.sent.Burst(),
		)
	}
	return release, nil
}

// execute returns the answer remembered under the command's idempotency key, or reserves the key
// and sends the command. Its time limit covers two calls one after the other: the call of another
// holder of the key, which execute may have to wait for, and its own. Each takes at most the hub's
// timeout and the wait for storage. calling is the context of the call, with its cleanup.
func (c *Commands) execute(
	calling context.Context, key callKey, o domain.Origin, command domain.Command,
) result {
	ctx, cancel := context.WithTimeout(calling, 2*(c.cfg.HubTimeout+leaderTimeout))
	defer cancel()
	if key.reservation == "" {
		if err := c.mayBegin(ctx, command.HubID); err != nil {
			return result{err: c.notSent(err)}
		}
		rec := newRecord(o, command, ulid.Make().String())
		return c.sendToHub(ctx, rec, c.recordRequest(ctx, rec), command, nil)
	}
	early := c.newEarlyRecord(calling, o, command)
	r, err := c.reserve(ctx, key, command, early)
	switch {
	case err != nil:
		return result{err: c.notSent(err), cleanup: early.wait}
	case len(r.Answer) > 0:
		c.metrics.repeated.Inc()
		channel, err := restoreAnswer(r.Answer)
		return result{
			channel: channel, err: err, commandID: r.ID, source: fromMemory, cleanup: early.wait,
		}
	case early.CommandID == r.ID:
		return c.sendToHub(ctx, early.record, early.stored(), command, r)
	}
	rec := newRecord(o, command, r.ID)
	sent := c.sendToHub(ctx, rec, c.recordRequest(ctx, rec), command, r)
	recordOutcome := sent.cleanup
	sent.cleanup = func() {
		if recordOutcome != nil {
			recordOutcome()
		}
		early.wait()
	}
	return sent
}

// reserve reserves the command's key. While a new key is stored, the command's record is stored as
// well: early.
func (c *Commands) reserve(
	ctx context.Context, key callKey, command domain.Command, early *earlyRecord,
) (*once.Reservation, error) {
	ctx, span := c.cfg.Tracer.Start(ctx, "reserve idempotency key", trace.SpanKindInternal)
	r, err := c.cfg.Keys.Reserve(ctx, once.Request{
		OrgID: command.OrgID, Name: key.reservation, Fingerprint: key.fingerprint,
		Hold:  c.cfg.HubTimeout + holdMargin,
		Check: func(ctx context.Context) error { return c.mayBegin(ctx, command.HubID) },
		Begin: early.begin,
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

// sendToHub sends a command to its hub once, unless recordErr reports that rec, its record, is not
// stored. It stores a final answer in reservation, which is nil for a command without an
// idempotency key. The result's cleanup records the outcome.
func (c *Commands) sendToHub(
	ctx context.Context, rec record, recordErr error, command domain.Command,
	reservation *once.Reservation,
) result {
	r := result{commandID: rec.CommandID}
	if r.err = c.notSent(recordErr); r.err == nil {
		r.source = fromHub
		r.channel, r.err = c.hubs.Command(ctx, command, rec.CommandID)
		r.err = c.maybeSent(r.err)
		outcome := rec.answered(c.cfg.Now(), r.err)
		r.cleanup = func() { c.recordOutcome(ctx, outcome) }
	}
	if reservation == nil {
		return r
	}
	if first := c.remember(ctx, reservation, finalAnswer(r.channel, r.err)); len(first) > 0 {
		r.source = fromMemory
		r.channel, r.err = restoreAnswer(first)
	}
	return r
}

// remember stores the final answer in a reservation, or releases the reservation if a is nil. It
// returns the answer of another holder that has overtaken this call and got an answer; nil
// otherwise.
func (c *Commands) remember(ctx context.Context, r *once.Reservation, a *answer) []byte {
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

// cleanupContext returns the context for storing the outcome of a call, whose own context may have
// ended.
func (c *Commands) cleanupContext() (context.Context, context.CancelFunc) {
	if c.isAborted() {
		return context.WithTimeout(context.Background(), abortTimeout)
	}
	return context.WithTimeout(context.Background(), cleanupTimeout)
}
