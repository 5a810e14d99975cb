package directory

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// Webhooks returns the webhooks of an organization with every change that was acknowledged before
// the call, the oldest first.
func (s *Service) Webhooks(ctx context.Context, orgID string) (domain.WebhooksState, error) {
	webhooks, _, err := s.webhooks.Get(ctx, orgID)
	return webhooks, err
}

// CreateWebhook creates a webhook with an id of the caller, a UUIDv7, or with a new id if id is
// empty. seal returns the sealed signing secret for an id. It returns a webhook that already has
// the id unchanged: the caller created it before and lost the answer. It returns rate_limited for
// one beyond domain.MaxWebhooks.
func (s *Service) CreateWebhook(
	ctx context.Context, o domain.Origin, orgID, id string, target domain.WebhookTarget,
	seal func(id string) []byte,
) (domain.Webhook, error) {
	o = s.stamp(o)
	if id == "" {
		id = s.newID(o)
	}
	return s.updateWebhook(ctx, o, orgID, id, func(w domain.WebhooksState) ([]domain.Event, error) {
		if _, err := w.Get(id); err == nil {
			return nil, nil
		}
		return domain.DecideCreateWebhook(w, o, orgID, id, target, seal(id))
	})
}

// ChangeWebhook changes a webhook. It returns not_found for one that the organization does not have,
// as the following functions do.
func (s *Service) ChangeWebhook(
	ctx context.Context, o domain.Origin, orgID, id string, c domain.WebhookChange,
) (domain.Webhook, error) {
	o = s.stamp(o)
	return s.updateWebhook(ctx, o, orgID, id, func(w domain.WebhooksState) ([]domain.Event, error) {
		return domain.DecideChangeWebhook(w, o, id, c)
	})
}

// RotateWebhook replaces the sealed secret of a webhook. The former one is used for the time overlap.
func (s *Service) RotateWebhook(
	ctx context.Context, o domain.Origin, orgID, id string, sealed []byte, overlap time.Duration,
) (domain.Webhook, error) {
	o = s.stamp(o)
	return s.updateWebhook(ctx, o, orgID, id, func(w domain.WebhooksState) ([]domain.Event, error) {
		return domain.DecideRotateWebhook(w, o, id, sealed, overlap)
	})
}

// ReplayWebhook moves a webhook to a position, which the caller has checked, or to a time if after
// is empty.
func (s *Service) ReplayWebhook(
	ctx context.Context, o domain.Origin, orgID, id, after string, since time.Time,
) (domain.Webhook, error) {
	o = s.stamp(o)
	return s.updateWebhook(ctx, o, orgID, id, func(w domain.WebhooksState) ([]domain.Event, error) {
		return domain.DecideReplayWebhook(w, o, id, after, since)
	})
}

// DeleteWebhook deletes a webhook. Deleting is always allowed.
func (s *Service) DeleteWebhook(ctx context.Context, o domain.Origin, orgID, id string) error {
	o = s.stamp(o)
	_, _, err := s.webhooks.Update(
		ctx, orgID, func(w domain.WebhooksState) ([]domain.Event, error) {
			return domain.DecideDeleteWebhook(w, o, id)
		},
	)
	return err
}

// DisableWebhook disables a webhook for the service, unless it has changed since it was read.
func (s *Service) DisableWebhook(
	ctx context.Context, was domain.Webhook, cause domain.WebhookDisableCause,
) error {
	o := s.stamp(domain.Origin{Actor: domain.Actor{Kind: domain.ActorService}})
	_, _, err := s.webhooks.Update(
		ctx, was.OrgID, func(w domain.WebhooksState) ([]domain.Event, error) {
			return domain.DecideDisableWebhook(w, o, was, cause)
		},
	)
	return err
}

func (s *Service) updateWebhook(
	ctx context.Context, o domain.Origin, orgID, id string,
	decide func(domain.WebhooksState) ([]domain.Event, error),
) (domain.Webhook, error) {
	all, _, err := s.webhooks.Update(ctx, orgID, limitChanges(s, o, orgID, decide))
	if err != nil {
		return domain.Webhook{}, err
	}
	return all.Get(id)
}

// FollowWebhooks calls fn with the webhooks of each organization that has had any: first as they
// are stored, then as they change, within a second at the latest. It returns ctx's error when ctx
// ends, and nats.ErrConnectionClosed; other errors of the broker only delay it. An event that this
// program cannot read is left out.
func (l *Log) FollowWebhooks(
	ctx context.Context, fn func(orgID string, webhooks domain.WebhooksState),
) error {
	all := map[string]domain.WebhooksState{}
	return l.followEach(ctx, streams.WebhooksSubject("*"), func(org string, e domain.Event) bool {
		state, err := domain.EvolveWebhooks(all[org], e)
		if err == nil {
			all[org] = state
		}
		return err == nil
	}, func(org string) { fn(org, all[org]) })
}

// FollowBooks is FollowWebhooks for the books of organizations.
func (l *Log) FollowBooks(ctx context.Context, fn func(orgID string, book domain.Book)) error {
	all := map[string]domain.Book{}
	return l.followEach(ctx, streams.OrgSubject("*"), func(org string, e domain.Event) bool {
		if e.Type != (domain.BookSet{}).EventType() {
			return false
		}
		fact, err := e.Fact()
		if set, ok := fact.(domain.BookSet); ok && err == nil {
			all[org] = all[org].With(set.BookSettings, e.At)
			return true
		}
		return false
	}, func(org string) { fn(org, all[org]) })
}

// followEach calls add with the events of the aggregates that match a filter, which ends in an
// asterisk, and changed with each id of which add has returned true.
func (l *Log) followEach(
	ctx context.Context, filter string, add func(id string, e domain.Event) bool,
	changed func(id string),
) error {
	const reread = time.Second
	stored := make(chan *nats.Msg, 1)
	sub, err := l.nc.Subscribe("feed."+filter, func(m *nats.Msg) {
		select {
		case stored <- m:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer streams.Unsubscribe(sub)
	after := uint64(0)
	timer := time.NewTicker(reread)
	defer timer.Stop()
	for {
		for {
			msgs, err := l.read(ctx, filter, after+1)
			if err != nil || len(msgs) == 0 {
				break // read again after the next change, or in a second
			}
			ids := map[string]bool{}
			for _, m := range msgs {
				after = m.Sequence
				id := jsapi.Field(m.Header, jsapi.HeaderSubject)[len(filter)-1:]
				if event, _, err := domain.DecodeEvent(m.Data); err == nil && add(id, event) {
					ids[id] = true
				}
			}
			for id := range ids {
				changed(id)
			}
		}
		if l.nc.IsClosed() {
			return nats.ErrConnectionClosed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stored:
		case <-timer.C:
		}
	}
}
