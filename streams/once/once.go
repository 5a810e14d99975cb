package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

const (
	// onceHold is how long the function that Once runs may take before a concurrent duplicate takes
	// over. The duplicate waits longer than that, and taking over does no harm.
	onceHold = 20 * time.Second
	// finishTimeout bounds the storage of an answer.
	finishTimeout = 10 * time.Second
)

// answer is a final answer of Once: the body of a success, or the error.
type answer struct {
	Body json.RawMessage `json:"body,omitempty"`
	FinalError
}

// Once runs do once for a request under an organization's key, and returns the JSON or the error
// that do returned; for a key with a final answer, it returns that answer. A success and the errors
// not_found, invalid_request and forbidden are final. do receives the UUID for the object that it
// creates. If do runs again because its answer was lost, it must find the object it created.
// replayed reports that the answer is a remembered one.
//
// The answer is stored before Once returns it. If that fails, Once returns service_unavailable, and
// the same request gets the answer later.
func (k *Keys) Once(
	ctx context.Context, org, key string, request []byte,
	do func(ctx context.Context, id string) ([]byte, error),
) (body []byte, replayed bool, err error) {
	name := Name(org, key)
	unlock, err := k.lock(ctx, name)
	if err != nil {
		return nil, false, waitTimedOut(err)
	}
	defer unlock()
	r, err := k.Reserve(
		ctx, Request{OrgID: org, Name: name, Fingerprint: Fingerprint(request), Hold: onceHold},
	)
	if err != nil {
		return nil, false, waitTimedOut(err)
	}
	if len(r.Answer) > 0 {
		body, err = restoreAnswer(r.Answer)
		return body, true, err
	}
	id, err := r.UUID()
	if err != nil {
		return nil, false, err
	}
	body, doErr := do(ctx, id)
	body, err = k.finishOnce(ctx, r, body, doErr)
	return body, false, err
}

// Answer returns the JSON that is remembered under an organization's key. The error is not_found if
// there is none, the error that is remembered, or service_unavailable.
func (k *Keys) Answer(ctx context.Context, org, key string) ([]byte, error) {
	a := &attempt{keys: k, request: Request{OrgID: org, Name: Name(org, key)}}
	a.renew()
	r, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	if len(r.Answer) == 0 || k.cfg.Now().Sub(r.ReservedAt) > k.cfg.Window {
		return nil, domain.Errorf(domain.CodeNotFound, "nothing is remembered under this key")
	}
	return restoreAnswer(r.Answer)
}

// finishOnce stores the outcome of do and returns the answer of the request.
func (k *Keys) finishOnce(
	ctx context.Context, r *Reservation, body []byte, doErr error,
) ([]byte, error) {
	final, err := finalAnswer(body, doErr)
	if err != nil {
		return nil, err
	}
	// The answer is stored although the caller has gone.
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	first, err := k.Finish(finishing, r, final)
	switch {
	case err != nil && len(final) == 0:
		k.cfg.Logger.WarnContext(ctx, "idempotency key not released", "error", err)
		return nil, doErr
	case err != nil:
		return nil, domain.UnavailableBecause(
			err,
			"the request was done, but its answer could not be stored under its "+
				"Idempotency-Key: send the same request again for the answer",
		)
	case len(first) > 0:
		return restoreAnswer(first)
	}
	return body, doErr
}

// waitTimedOut returns service_unavailable for a wait for a concurrent duplicate that timed out,
// and any other error as it is.
func waitTimedOut(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && domain.CodeOf(err) == domain.CodeInternal {
		return domain.UnavailableBecause(
			err, "the same request is still under way: send it again for its answer",
		)
	}
	return err
}

// lock waits until this process runs nothing else under the name, so that duplicates at one replica
// wait for each other without polling the broker.
func (k *Keys) lock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		k.mu.Lock()
		ended, busy := k.running[name]
		if !busy {
			ended = make(chan struct{})
			k.running[name] = ended
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.running, name)
				k.mu.Unlock()
				close(ended)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// finalAnswer returns the answer to remember; nil if the same request may have another outcome.
func finalAnswer(body []byte, doErr error) ([]byte, error) {
	a := answer{Body: body}
	if doErr != nil {
		final, ok := NewFinalError(
			doErr, domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeForbidden,
		)
		if !ok {
			return nil, nil
		}
		a = answer{FinalError: final}
	}
	return json.Marshal(a)
}

// restoreAnswer decodes a remembered answer, which is a result or an error.
func restoreAnswer(remembered []byte) ([]byte, error) {
	var a answer
	if err := json.Unmarshal(remembered, &a); err != nil {
		return nil, fmt.Errorf("once: decode remembered answer: %w", err)
	}
	if a.Code != "" {
		return nil, a.Err()
	}
	return a.Body, nil
}
