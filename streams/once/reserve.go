package once

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// firstPause is the first pause between two reads of a reservation; it doubles up to maxPause.
	firstPause = 10 * time.Millisecond
	maxPause   = 250 * time.Millisecond
	// maxUnsure is how often a write is repeated whose acknowledgement was lost.
	maxUnsure = 3
	// leaderTimeout bounds the wait for a leader of the bucket.
	leaderTimeout = 15 * time.Second
)

// Request is a request with an idempotency key.
type Request struct {
	OrgID string
	// Name is the name of the reservation (see Name).
	Name string
	// Fingerprint is the same for the same request (see Fingerprint).
	Fingerprint string
	// Hold is how long the request may run before another process may take over.
	Hold time.Duration
	// Check, if not nil, is called before a key without an answer is reserved. Its error is the
	// request's.
	Check func(ctx context.Context) error
	// Begin, if not nil, is called with the ID of a new reservation just before the reservation is
	// written, to start work that need not wait for the write. It must not block. If the
	// reservation does not become the caller's, because the key was taken or with Reserve's error,
	// the function that Begin returned is called once, with this error or nil. It must not block
	// either. Begin is called at most once, and not for every new key.
	Begin func(id string) (withdraw func(err error))
}

// Reserve reserves a key for a request. The reservation either has an answer, or is held by the
// caller, who must call Finish. Errors are idempotency_conflict; rate_limited for an organization
// with too many keys; service_unavailable when the bucket has no leader for 15 s; q.Check's;
// and ctx's.
func (k *Keys) Reserve(ctx context.Context, q Request) (*Reservation, error) {
	a := &attempt{keys: k, id: ulid.Make().String(), request: q}
	a.renew()
	r, err := a.reserveUnread(ctx)
	for r == nil && err == nil {
		r, err = a.reserveRead(ctx)
	}
	if err != nil {
		a.withdrawBegun("", err)
	}
	return r, err
}

// attempt is one call of Reserve.
type attempt struct {
	keys    *Keys
	request Request
	// id names the attempt in the reservation.
	id string
	// until is when the wait for a leader ends.
	until time.Time
	// pause is the last pause; 0 before the first.
	pause time.Duration
	// unsure counts the writes whose acknowledgement was lost.
	unsure int
	// begun is the ID for which Begin was called, and withdraw what Begin returned; nil if Begin
	// was not called, or its reservation is known to be the caller's or not.
	begun    string
	withdraw func(err error)
}

// reserveUnread reserves the key without reading it first, since most keys are new: the write fails
// if the key exists. It returns nil if the key has to be read. It rejects no request, because the
// key may have an answer.
func (a *attempt) reserveUnread(ctx context.Context) (*Reservation, error) {
	q := a.request
	if q.Check != nil && q.Check(ctx) != nil || !a.keys.admitted(q.OrgID) ||
		a.keys.recent.add(q.Name) {
		return nil, nil
	}
	now := a.keys.cfg.Now()
	r := &Reservation{name: q.Name}
	r.begin(q.Fingerprint, now)
	if q.Begin != nil {
		a.begun, a.withdraw = r.ID, q.Begin(r.ID)
	}
	return a.hold(ctx, r, now)
}

// withdrawBegun withdraws what Begin has begun, unless it was for the ID of the reservation that is
// stored. A write whose acknowledgement was lost may have stored that one.
func (a *attempt) withdrawBegun(stored string, err error) {
	if a.withdraw != nil && stored != a.begun {
		a.withdraw(err)
	}
	a.withdraw = nil
}

// reserveRead reads the reservation and returns it if it has an answer; otherwise reserveRead makes
// the attempt its holder. It returns nil if the reservation has to be read again: another process
// holds it, or it was changed after the read.
func (a *attempt) reserveRead(ctx context.Context) (*Reservation, error) {
	r, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	if !r.isNew() {
		a.withdrawBegun(r.ID, nil)
	}
	now := a.keys.cfg.Now()
	next, err := a.next(ctx, r, now)
	if err != nil {
		return nil, err
	}
	switch next {
	case actionReturn:
		return r, nil
	case actionWait:
		return nil, a.sleep(ctx, r.Deadline.Sub(now))
	}
	if err := a.mayReserve(ctx, r); err != nil {
		return nil, err
	}
	return a.hold(ctx, r, now)
}

// action is what an attempt does with a reservation that it has read.
type action int

const (
	actionReturn action = iota // return the reservation: it has an answer, or the attempt holds it
	actionWait                 // read it again later: another process holds it
	actionHold                 // write it with this attempt as the holder
)

// next returns what to do with r, the reservation as read at the time now; idempotency_conflict if
// the key stands for another request. If the key is new or its window is over, next makes r a new
// reservation of the request.
func (a *attempt) next(ctx context.Context, r *Reservation, now time.Time) (action, error) {
	switch {
	case !r.isNew() && r.Attempt == a.id:
		return actionReturn, nil // a write whose acknowledgement was lost
	case r.isNew() || now.Sub(r.ReservedAt) >= a.keys.cfg.Window:
		r.begin(a.request.Fingerprint, now)
		if a.withdraw != nil {
			r.ID = a.begun // nothing is stored, or not yet: the former write is repeated
		}
		return actionHold, nil
	case r.Fingerprint != a.request.Fingerprint:
		return 0, domain.Errorf(
			domain.CodeIdempotencyConflict,
			"Idempotency-Key: was used for another request; use a new key",
		)
	case len(r.Answer) > 0:
		return actionReturn, nil
	case now.Before(r.Deadline) && a.keys.heldElsewhere(ctx, r.Process):
		return actionWait, nil
	}
	return actionHold, nil
}

// mayReserve returns an error if the request may not reserve r, which has no answer.
func (a *attempt) mayReserve(ctx context.Context, r *Reservation) error {
	if a.request.Check != nil {
		if err := a.request.Check(ctx); err != nil {
			return err
		}
	}
	if r.isNew() {
		return a.keys.admit(ctx, a.request.OrgID)
	}
	return nil
}

// hold writes r with the attempt as its holder and returns it; nil if the reservation has to be
// read again.
func (a *attempt) hold(ctx context.Context, r *Reservation, now time.Time) (*Reservation, error) {
	r.Process, r.Attempt, r.Deadline = a.keys.process, a.id, now.Add(a.request.Hold)
	revision, err := a.write(ctx, r)
	if err != nil || revision == 0 {
		return nil, err
	}
	if r.isNew() {
		a.keys.addKey(a.request.OrgID)
	}
	r.revision = revision
	return r, nil
}

// renew starts the wait for a leader again.
func (a *attempt) renew() { a.until = time.Now().Add(leaderTimeout) }

// sleep pauses for twice the last pause, at most for the given time.
func (a *attempt) sleep(ctx context.Context, most time.Duration) error {
	a.pause = min(max(firstPause, 2*a.pause), maxPause)
	if !streams.Sleep(ctx, min(a.pause, most)) {
		return ctx.Err()
	}
	return nil
}

// read reads the reservation; its revision is 0 if the key is new.
func (a *attempt) read(ctx context.Context) (*Reservation, error) {
	for {
		r := &Reservation{name: a.request.Name}
		reading, cancel := context.WithDeadline(ctx, a.until)
		entry, err := a.keys.reserved.GetJSON(reading, r.name, r)
		cancel()
		r.revision = entry.Revision
		switch {
		case err == nil:
			a.renew()
			return r, nil
		case !errors.Is(err, jsapi.ErrNoStream) || time.Now().After(a.until):
			return nil, unavailable(err)
		}
		if err := a.sleep(ctx, maxPause); err != nil {
			return nil, err
		}
	}
}

// write writes the reservation and returns its revision; 0 if the reservation has to be read again,
// because it was changed since the read or because the write may have been stored.
func (a *attempt) write(ctx context.Context, r *Reservation) (revision uint64, err error) {
	revision, err = a.keys.reserved.CompareAndSetJSON(ctx, r.name, r, r.revision)
	switch {
	case err == nil:
		return revision, nil
	case errors.Is(err, jsapi.ErrConflict):
		return 0, nil
	case errors.Is(err, jsapi.ErrOutcomeUnknown) && a.unsure < maxUnsure && time.Now().Before(a.until):
		a.unsure++
		return 0, nil
	case errors.Is(err, jsapi.ErrNoStream):
		// Nothing was stored. The next read waits for a leader.
		return 0, a.sleep(ctx, maxPause)
	}
	return 0, unavailable(err)
}

// Finish stores the final answer of a reservation that the caller holds, or releases the
// reservation if answer is empty. If another holder has taken over and stored an answer first,
// Finish returns that answer; otherwise it returns nil. On an error the answer is not stored; ctx
// bounds how long Finish tries.
func (k *Keys) Finish(
	ctx context.Context, r *Reservation, answer []byte,
) (first []byte, err error) {
	finished := *r
	finished.Answer = answer
	finished.Process, finished.Attempt, finished.Deadline = "", "", time.Time{}
	revision := r.revision
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		_, err := k.reserved.CompareAndSetJSON(ctx, r.name, &finished, revision)
		switch {
		case err == nil:
			org, _, _ := strings.Cut(r.name, ".")
			k.bytes.Charge(org, len(answer), k.cfg.Now())
			return nil, nil
		case errors.Is(err, jsapi.ErrConflict):
		case errors.Is(err, jsapi.ErrOutcomeUnknown), errors.Is(err, jsapi.ErrNoStream):
			if !streams.Sleep(ctx, pause) {
				return nil, err
			}
		default:
			return nil, err
		}
		var stored Reservation
		entry, err := k.reserved.GetJSON(ctx, r.name, &stored)
		if err != nil {
			return nil, err
		}
		if entry.Revision < r.revision && k.cfg.Now().Sub(r.ReservedAt) < k.cfg.Window {
			// A deposed leader, which does not have the reservation.
			if !streams.Sleep(ctx, pause) {
				return nil, ctx.Err()
			}
			continue
		}
		revision = entry.Revision
		switch {
		case revision == 0 || stored.ID != r.ID:
			return nil, nil // the window is over
		case len(stored.Answer) > 0:
			return stored.Answer, nil
		case len(answer) == 0 && stored.Attempt != r.Attempt:
			return nil, nil // released, or held by another attempt
		}
	}
}

// unavailable translates the error of a bucket that does not answer to service_unavailable; any
// other error stays what it is. Nothing was done: requests run after they are reserved.
func unavailable(err error) error {
	return jsapi.Unavailable(
		err, "idempotency keys cannot be stored at the moment; nothing was done",
	)
}
