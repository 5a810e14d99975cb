package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

const (
	// onceTime is how long what Once does may take before a twin takes over, which does no harm:
	// shorter than the twin waits.
	onceTime = 20 * time.Second
	// settleTime bounds how long the answer's storage may take.
	settleTime = 10 * time.Second
)

// answer is what Once remembers: the body of a success, or the error.
type answer struct {
	Body    json.RawMessage `json:"body,omitempty"`
	Code    domain.Code     `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
}

// Once does what a request asks for once under an organization's key, and returns the JSON that do
// returned, or its error: that of the first time, when the matter was settled then. do gets the
// UUID of what it makes; done again after its answer was lost it must find what it made. A success,
// and the errors not_found, invalid_request and forbidden, settle the matter. The answer is stored
// before it is returned; when that fails it is service_unavailable, and the same request gets the
// answer later.
func (k *Keys) Once(
	ctx context.Context, org, key string, request []byte,
	do func(ctx context.Context, id string) ([]byte, error),
) ([]byte, error) {
	name := Name(org, key)
	leave, err := k.enter(ctx, name)
	if err != nil {
		return nil, waited(err)
	}
	defer leave()
	r, err := k.Reserve(
		ctx, Request{OrgID: org, Name: name, Fingerprint: Fingerprint(request), Hold: onceTime},
	)
	if err != nil {
		return nil, waited(err)
	}
	if len(r.Answer) > 0 {
		return give(r.Answer)
	}
	id, err := r.UUID()
	if err != nil {
		return nil, err
	}
	body, failed := do(ctx, id)
	settled, err := settling(body, failed)
	if err != nil {
		return nil, err
	}
	// What was done is remembered although the caller has gone.
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	first, err := k.Settle(settle, r, settled)
	switch {
	case err != nil && len(settled) == 0:
		k.cfg.Log.WarnContext(ctx, "idempotency key not released", "error", err)
		return nil, failed
	case err != nil:
		return nil, errors.Join(domain.Unavailable(
			"what was asked for was done, and the answer could not be stored under its "+
				"Idempotency-Key: send the same request again for the answer",
		), err)
	case len(first) > 0:
		return give(first)
	}
	return body, failed
}

// waited returns service_unavailable for a twin that did not end in time, and any other error as it
// is.
func waited(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && domain.CodeOf(err) == domain.CodeInternal {
		return errors.Join(
			domain.Unavailable("the same request is still under way: send it again for its answer"),
			err,
		)
	}
	return err
}

// enter waits until this process does nothing else under a name, so that twins wait for one another
// without asking the broker.
func (k *Keys) enter(ctx context.Context, name string) (leave func(), err error) {
	for {
		k.mu.Lock()
		over, busy := k.running[name]
		if !busy {
			over = make(chan struct{})
			k.running[name] = over
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.running, name)
				k.mu.Unlock()
				close(over)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// settling returns the answer to remember; nothing when the same request may have another outcome.
func settling(body []byte, failed error) ([]byte, error) {
	a := answer{Body: body}
	if failed != nil {
		var refusal *domain.Error
		if !errors.As(failed, &refusal) {
			return nil, nil
		}
		switch refusal.Code {
		case domain.CodeNotFound, domain.CodeInvalidRequest, domain.CodeForbidden:
			a = answer{Code: refusal.Code, Message: refusal.Message}
		default:
			return nil, nil
		}
	}
	return json.Marshal(a)
}

// give returns a remembered answer as it was given the first time.
func give(remembered []byte) ([]byte, error) {
	var a answer
	if err := json.Unmarshal(remembered, &a); err != nil {
		return nil, fmt.Errorf("idempotency: unreadable answer: %w", err)
	}
	if a.Code != "" {
		return nil, &domain.Error{Code: a.Code, Message: a.Message}
	}
	return a.Body, nil
}
