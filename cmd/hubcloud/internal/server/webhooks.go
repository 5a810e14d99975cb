package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/httpapi/webhook"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/lease"
	"hubcloud/streams"
	"hubcloud/streams/book"
	"hubcloud/streams/jsapi"
)

// taskParts is how many parts webhooks, books, virtual hubs and the hubs of door codes are divided
// into. The replica that has the lease of a part runs all of it.
const taskParts = 16

// newWebhooks returns what delivers to webhooks.
func (s *web) newWebhooks() (*webhook.Deliverer, error) {
	key, err := s.authority.DeriveKey("signing secrets of webhooks")
	if err != nil {
		return nil, err
	}
	vault, err := streams.NewVault(key)
	if err != nil {
		return nil, err
	}
	return webhook.NewDeliverer(webhook.DelivererConfig{
		Feeds:    feeds{s.orgFeed},
		Progress: webhookProgress{jsapi.NewBucket(s.conns.Cloud, streams.WebhooksBucket)},
		Disable:  s.directory.DisableWebhook, Mail: s.mailWebhook,
		Follow: s.directoryLog.FollowWebhooks, Vault: webhook.Vault{Vault: vault}, Private: s.cfg.WebhookPrivate,
		UserAgent: installation.UserAgent(), Parts: taskParts, Retention: s.cfg.EventRetention,
		Shares: s.shares, Logger: s.logger, Metrics: s.registry,
	})
}

// newCodes returns what sets the codes of locks.
func (s *web) newCodes() (*commands.Codes, error) {
	key, err := s.authority.DeriveKey("door codes")
	if err != nil {
		return nil, err
	}
	vault, err := streams.NewVault(key)
	if err != nil {
		return nil, err
	}
	return commands.NewCodes(commands.CodesConfig{
		Directory: s.directory, Locks: s.devices, Presence: s.presence.Get, KV: s.buckets.Codes,
		Conn: s.conns.Cloud, Vault: vault, Parts: taskParts, Logger: s.logger,
		Metrics: s.registry,
	})
}

// runWebhooks starts the deliveries, the sending of door codes, and the books and virtual hubs of
// organizations, which the replicas with the role api divide.
func (s *web) runWebhooks() error {
	leases, err := lease.NewKeeper(lease.Config{
		Conn: s.conns.Cloud, Bucket: s.buckets.WebhookLeases, ReplicaID: s.replicaID,
		Groups: taskParts, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	books, err := book.NewKeeper(book.Config{
		Log: s.books, Progress: jsapi.NewBucket(s.conns.Cloud, streams.WebhooksBucket),
		Read: s.readForBook, Follow: s.directoryLog.FollowBooks, Describe: s.portal.BookEntries,
		Hubs: func(ctx context.Context, org string) ([]domain.HubID, error) {
			err := s.access.Refresh(ctx)
			return s.access.HubsOf(org), err
		},
		Parts: taskParts, Retention: s.cfg.EventRetention, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.bookKeeper.Store(books)
	if !s.cfg.has(roleBridge) { // with it, what asks hubs for their devices passes them on
		s.access.OnAdd(s.virtualHubs.change)
	}
	s.run(stopLoops, "webhooks", s.webhooks.Follow)
	s.run(stopLoops, "books", books.Follow)
	s.run(stopLoops, "door codes", s.codes.Follow)
	s.run(stopLoops, "webhook deliveries", func(ctx context.Context) error {
		return leases.Run(ctx, func(ctx context.Context, part int, held func() bool) error {
			all, ctx := errgroup.WithContext(ctx)
			all.Go(func() error { return s.webhooks.Serve(ctx, part, held) })
			all.Go(func() error { return books.Serve(ctx, part, held) })
			all.Go(func() error { return s.serveVirtualHubs(ctx, part) })
			all.Go(func() error { return s.codes.Serve(ctx, part, held) })
			return all.Wait()
		})
	})
	return nil
}

// readForBook is book.Config.Read.
func (s *web) readForBook(
	ctx context.Context, org, after string, since time.Time,
) (book.Reader, error) {
	all := feeds{s.orgFeed}
	if after != "" {
		return all.Follow(ctx, org, domain.EventFilter{}, after)
	}
	return all.FollowSince(ctx, org, domain.EventFilter{}, since)
}

// mailWebhook mails the owners and admins that a webhook is disabled.
func (s *web) mailWebhook(
	ctx context.Context, w domain.Webhook, cause domain.WebhookDisableCause, since time.Time,
) error {
	org, err := s.directory.Org(ctx, w.OrgID)
	if err != nil {
		return err
	}
	return s.mailer.SendWebhookDisabled(ctx, org, w, cause, since)
}

// webhookProgress is the bucket of how far webhooks have come.
type webhookProgress struct{ bucket jsapi.Bucket }

// Get returns the progress of a webhook and its revision.
func (b webhookProgress) Get(
	ctx context.Context, id string,
) (p domain.WebhookProgress, revision uint64, err error) {
	entry, err := b.bucket.GetJSON(ctx, id, &p)
	return p, entry.Revision, jsapi.Unavailable(
		err, "the deliveries of the webhook are not known at the moment; try again later",
	)
}

// Put stores the progress of a webhook, on condition of its revision.
func (b webhookProgress) Put(
	ctx context.Context, id string, p domain.WebhookProgress, revision uint64,
) (uint64, error) {
	return b.bucket.CompareAndSetJSON(ctx, id, p, revision)
}

// Delete removes the progress of a webhook.
func (b webhookProgress) Delete(ctx context.Context, id string) error {
	entry, err := b.bucket.Get(ctx, id)
	if err != nil || !entry.Exists() {
		return err
	}
	_, err = b.bucket.CompareAndSet(ctx, id, nil, jsapi.DeleteHeader(), entry.Revision)
	return err
}
