package server

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/projections/access"
	"hubcloud/projections/readmodel"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/feed/orgfeed"
)

// apiEvents adapts the hub logs to the API's interface.
type apiEvents struct{ *feed.Logs }

// Follow returns a reader of the events after a cursor.
func (e apiEvents) Follow(
	ctx context.Context, hub domain.HubID, after string,
) (httpapi.EventReader, error) {
	return asInterface[httpapi.EventReader](e.Logs.Follow(ctx, hub, after))
}

// asInterface returns a reader as an interface, nil after an error: not a nil pointer in an interface.
func asInterface[I any](reader any, err error) (none I, _ error) {
	if err != nil {
		return none, err
	}
	return reader.(I), nil
}

// feeds has the feeds of organizations.
type feeds struct{ *orgfeed.Feed }

// Follow returns a reader of the events after a position.
func (f feeds) Follow(
	ctx context.Context, org string, filter domain.EventFilter, after string,
) (streams.EventReader, error) {
	return asInterface[streams.EventReader](f.Feed.Follow(ctx, org, filter, after))
}

// FollowSince returns a reader of the events that were stored at a time or later.
func (f feeds) FollowSince(
	ctx context.Context, org string, filter domain.EventFilter, since time.Time,
) (streams.EventReader, error) {
	return asInterface[streams.EventReader](f.Feed.FollowSince(ctx, org, filter, since))
}

// apiOrgEvents adapts the feeds of organizations to the API's interface.
type apiOrgEvents struct {
	*orgfeed.Feed
	models *readmodel.Store
}

// StatesPosition returns a position of the feed from before the list of states.
func (e apiOrgEvents) StatesPosition(ctx context.Context, org string) (string, error) {
	return e.ListPosition(ctx, org, e.models.StatesReached)
}

// Part returns events that the filter chooses within a reach.
func (e apiOrgEvents) Part(
	ctx context.Context, reach domain.Reach, filter domain.EventFilter, after string,
	limit, bytes int, wait time.Duration,
) (domain.EventPage, error) {
	filter.Within = reach.Sites
	return e.Feed.Part(ctx, reach.OrgID, filter, after, limit, bytes, wait)
}

// Last returns the position before the newest events that the filter chooses within a reach.
func (e apiOrgEvents) Last(
	ctx context.Context, reach domain.Reach, filter domain.EventFilter, n int,
) (string, error) {
	filter.Within = reach.Sites
	return e.Feed.Last(ctx, reach.OrgID, filter, n)
}

// Follow returns a reader of the events within a reach after a position.
func (e apiOrgEvents) Follow(
	ctx context.Context, reach domain.Reach, filter domain.EventFilter, after string,
) (httpapi.EventReader, error) {
	filter.Within = reach.Sites
	return asInterface[httpapi.EventReader](e.Feed.Follow(ctx, reach.OrgID, filter, after))
}

// apiAudit adapts the read models and the access index to the API's interface.
type apiAudit struct {
	*readmodel.Store
	access *access.Index
}

// ActivityChanged returns a channel that is closed at new activity of an organization.
func (a apiAudit) ActivityChanged(org string) <-chan struct{} { return a.access.ActivityChanged(org) }

// AwaitActivity waits until the read models have what the index has.
func (a apiAudit) AwaitActivity(ctx context.Context) error {
	return a.Store.WaitFor(ctx, a.access.Applied())
}

// grantsBus exchanges messages on rate limits with the other replicas, over the broker.
type grantsBus struct {
	nc      *nats.Conn
	replica string
}

// Publish sends a message to the other replicas.
func (b grantsBus) Publish(message []byte) error {
	return b.nc.Publish(streams.GrantsSubject(b.replica), message)
}

// Subscribe calls fn with each message of another replica until stop is called.
func (b grantsBus) Subscribe(fn func(message []byte)) (stop func(), err error) {
	own := streams.GrantsSubject(b.replica)
	sub, err := b.nc.Subscribe(streams.GrantsSubject("*"), func(msg *nats.Msg) {
		if msg.Subject != own {
			fn(msg.Data)
		}
	})
	if err != nil {
		return nil, err
	}
	// Unsubscribe fails only when the connection is closed, which ends the subscription too.
	return func() { streams.Unsubscribe(sub) }, nil
}
