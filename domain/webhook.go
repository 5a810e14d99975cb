package domain

import (
	"reflect"
	"slices"
	"time"
)

// Webhook is an address that the service posts the events of an organization to.
type Webhook struct {
	OrgID string
	ID    string
	WebhookTarget
	// Secrets are sealed, the newest first. Requests are signed with each that has not expired.
	Secrets []WebhookSecret
	// DisabledBy is why nothing is posted; empty if the webhook is enabled. DisabledAt is since when.
	DisabledBy WebhookDisableCause
	DisabledAt time.Time
	// Start is where deliveries begin. A later Start replaces the position that was reached.
	Start     WebhookStart
	CreatedAt time.Time
	// EnabledAt is when it was enabled last: failures before do not count.
	EnabledAt time.Time
}

// WebhookTarget is where events go, and which.
type WebhookTarget struct {
	// Name is what people call the webhook; may be empty.
	Name   string      `json:"name"`
	URL    string      `json:"url"`
	Filter EventFilter `json:"filter"`
}

// WebhookSecret is a sealed signing secret.
type WebhookSecret struct {
	Sealed []byte
	// Until is when the secret is no longer used; zero for the newest.
	Until time.Time
}

// WebhookStart is where deliveries begin: after the position After, or else with the first event
// that was stored at Since or later. At is when it was decided, and differs for each Start of a
// webhook.
type WebhookStart struct {
	At    time.Time
	After string
	Since time.Time
}

// WebhookDisableCause is why a webhook is disabled.
type WebhookDisableCause string

// The causes.
const (
	// WebhookDisabledByRequest: somebody has disabled it.
	WebhookDisabledByRequest WebhookDisableCause = "request"
	// WebhookFailing: no request has succeeded for days.
	WebhookFailing WebhookDisableCause = "failing"
	// WebhookGone: the receiver answered 410, which says that it wants no more events.
	WebhookGone WebhookDisableCause = "gone"
)

const (
	// MaxWebhooks is how many webhooks an organization may have.
	MaxWebhooks = 20
	// MaxWebhookURL is the most bytes of a webhook's address.
	MaxWebhookURL = 2000
	// WebhookDisableAfter is how long a webhook fails before it is disabled.
	WebhookDisableAfter = 72 * time.Hour
	// maxFormerSecrets is how many former secrets of a webhook are used at once: whoever has lost the
	// answer to a rotation can repeat it.
	maxFormerSecrets = 3
	// MaxSecretOverlap is the longest time for which a former secret of a webhook is still used, and
	// DefaultSecretOverlap the time if none is given.
	MaxSecretOverlap, DefaultSecretOverlap = 7 * 24 * time.Hour, 24 * time.Hour
)

// Enabled reports whether events are posted.
func (w Webhook) Enabled() bool { return w.DisabledBy == "" }

// SecretsAt returns the sealed secrets that are used at a time, the newest first.
func (w Webhook) SecretsAt(at time.Time) [][]byte {
	var all [][]byte
	for _, s := range w.Secrets {
		if s.Until.IsZero() || at.Before(s.Until) {
			all = append(all, s.Sealed)
		}
	}
	return all
}

// WebhooksState are the webhooks of an organization, folded from their events, the oldest first. It
// must not be changed.
type WebhooksState []Webhook

// Get returns a webhook, and not_found if there is none with that id.
func (s WebhooksState) Get(id string) (Webhook, error) {
	if i := s.index(id); i >= 0 {
		return s[i], nil
	}
	return Webhook{}, ErrWebhookNotFound()
}

func (s WebhooksState) index(id string) int {
	return slices.IndexFunc(s, func(w Webhook) bool { return w.ID == id })
}

// DecideCreateWebhook creates a webhook. The caller has validated the target and sealed the secret.
// It returns rate_limited for one beyond MaxWebhooks.
func DecideCreateWebhook(
	s WebhooksState, o Origin, orgID, id string, target WebhookTarget, secret []byte,
) ([]Event, error) {
	if len(s) >= MaxWebhooks {
		return nil, RateLimited(
			time.Minute, "the organization has %d webhooks; at most %d are allowed. Delete one that "+
				"is no longer used", len(s), MaxWebhooks,
		)
	}
	return []Event{Record(o, WebhookCreated{
		OrgID: orgID, WebhookID: id, WebhookTarget: target, Secret: secret,
	})}, nil
}

// WebhookChange is a change of a webhook; nil fields stay as they are.
type WebhookChange struct {
	Name, URL *string
	Filter    *EventFilter
	Enabled   *bool
}

// DecideChangeWebhook changes a webhook; it returns no event if nothing changes.
func DecideChangeWebhook(s WebhooksState, o Origin, id string, c WebhookChange) ([]Event, error) {
	w, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	target := w.WebhookTarget
	if c.Name != nil {
		target.Name = *c.Name
	}
	if c.URL != nil {
		target.URL = *c.URL
	}
	if c.Filter != nil {
		target.Filter = *c.Filter
	}
	var events []Event
	if !reflect.DeepEqual(target, w.WebhookTarget) {
		events = append(events, Record(o, WebhookChanged{w.OrgID, w.ID, target}))
	}
	switch {
	case c.Enabled == nil || *c.Enabled == w.Enabled():
	case *c.Enabled:
		events = append(events, Record(o, WebhookEnabled{w.OrgID, w.ID}))
	default:
		events = append(events, Record(o, WebhookDisabled{w.OrgID, w.ID, WebhookDisabledByRequest}))
	}
	return events, nil
}

// DecideDisableWebhook disables a webhook that is as it was, at its last change; it returns no event
// for another.
func DecideDisableWebhook(
	s WebhooksState, o Origin, was Webhook, cause WebhookDisableCause,
) ([]Event, error) {
	if w, err := s.Get(was.ID); err != nil || !reflect.DeepEqual(w, was) {
		return nil, nil
	}
	return []Event{Record(o, WebhookDisabled{was.OrgID, was.ID, cause})}, nil
}

// DecideRotateWebhook replaces the secret of a webhook. The former one is used for the time overlap.
func DecideRotateWebhook(
	s WebhooksState, o Origin, id string, secret []byte, overlap time.Duration,
) ([]Event, error) {
	w, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	return []Event{Record(o, WebhookSecretRotated{
		w.OrgID, w.ID, secret, wholeMicroseconds(o.At.Add(overlap)),
	})}, nil
}

// DecideReplayWebhook moves a webhook to a position, or to a time if after is empty.
func DecideReplayWebhook(
	s WebhooksState, o Origin, id, after string, since time.Time,
) ([]Event, error) {
	w, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	fact := WebhookReplayed{OrgID: w.OrgID, WebhookID: w.ID, After: after}
	if after == "" {
		since = wholeMicroseconds(since)
		fact.Since = &since
	}
	return []Event{Record(o, fact)}, nil
}

// DecideDeleteWebhook deletes a webhook.
func DecideDeleteWebhook(s WebhooksState, o Origin, id string) ([]Event, error) {
	w, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	return []Event{Record(o, WebhookDeleted{w.OrgID, w.ID})}, nil
}

// EvolveWebhooks folds an event into the webhooks of an organization.
func EvolveWebhooks(s WebhooksState, e Event) (WebhooksState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	change := func(id string, do func(*Webhook)) (WebhooksState, error) {
		i := s.index(id)
		if i < 0 {
			return s, misplaced(e, "webhook that exists")
		}
		s := slices.Clone(s)
		do(&s[i])
		return s, nil
	}
	switch f := fact.(type) {
	case WebhookCreated:
		return append(slices.Clone(s), Webhook{
			OrgID: f.OrgID, ID: f.WebhookID, WebhookTarget: f.WebhookTarget, CreatedAt: e.At,
			EnabledAt: e.At,
			Secrets:   []WebhookSecret{{Sealed: f.Secret}}, Start: WebhookStart{At: e.At, Since: e.At},
		}), nil
	case WebhookChanged:
		return change(f.WebhookID, func(w *Webhook) { w.WebhookTarget = f.WebhookTarget })
	case WebhookSecretRotated:
		return change(f.WebhookID, func(w *Webhook) {
			former := slices.Clone(w.Secrets)
			former[0].Until = f.FormerUntil
			former = slices.DeleteFunc(
				former, func(s WebhookSecret) bool { return !s.Until.After(e.At) },
			)
			w.Secrets = append(
				[]WebhookSecret{{Sealed: f.Secret}}, former[:min(len(former), maxFormerSecrets)]...,
			)
		})
	case WebhookEnabled:
		return change(f.WebhookID, func(w *Webhook) {
			w.DisabledBy, w.DisabledAt, w.EnabledAt = "", time.Time{}, e.At
		})
	case WebhookDisabled:
		return change(f.WebhookID, func(w *Webhook) { w.DisabledBy, w.DisabledAt = f.Reason, e.At })
	case WebhookReplayed:
		start := WebhookStart{At: e.At, After: f.After}
		if f.Since != nil {
			start.Since = *f.Since
		}
		return change(f.WebhookID, func(w *Webhook) { w.Start = start })
	case WebhookDeleted:
		if i := s.index(f.WebhookID); i >= 0 {
			return slices.Delete(slices.Clone(s), i, i+1), nil
		}
		return s, misplaced(e, "webhook that exists")
	default:
		return s, misplaced(e, "webhook")
	}
}

// ErrWebhookNotFound returns the not_found error for a webhook.
func ErrWebhookNotFound() *Error { return Errorf(CodeNotFound, "no such webhook") }

// WebhookProgress is how far the deliveries of a webhook have come.
type WebhookProgress struct {
	// StartedAt is the WebhookStart.At that Position follows.
	StartedAt time.Time `json:"started_at"`
	// Position is the position of the feed up to which everything was delivered; empty if nothing was.
	Position string `json:"position,omitempty"`
	// FailingSince is when the first of the failures began that no success has followed.
	FailingSince time.Time `json:"failing_since,omitzero"`
	// NextAttempt is when the request that failed is posted again.
	NextAttempt time.Time `json:"next_attempt,omitzero"`
	// Deliveries are the last requests, the newest first.
	Deliveries []WebhookDelivery `json:"deliveries,omitempty"`
}

// MaxWebhookDeliveries is how many requests of a webhook are kept.
const MaxWebhookDeliveries = 20

// WebhookDelivery is a request to a webhook's address.
type WebhookDelivery struct {
	// MessageID is the header webhook-id.
	MessageID string    `json:"message_id"`
	At        time.Time `json:"at"`
	// Events is how many events the request had, and Attempt how often it was posted, this time
	// included.
	Events  int `json:"events"`
	Attempt int `json:"attempt"`
	// Status is the status of the answer; 0 for none.
	Status   int           `json:"status"`
	Duration time.Duration `json:"duration"`
	// Error is why it failed; empty if the receiver has taken it.
	Error string `json:"error,omitempty"`
}
