// Package viewstest opens journals and their views on a test's broker.
package viewstest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views"
)

// Open returns a Journal that runs until the test ends or stop is called. It also writes the
// journal and the views, unless another Journal on the same broker does.
func Open(
	t testing.TB, conns *streams.Conns, retention time.Duration,
) (j *journal.Journal, stop func()) {
	t.Helper()
	j, stopFollowing := Follow(t, conns, retention)
	_, err := conns.Cloud.Request(streams.AppendSubject(0), nil, time.Minute)
	if !errors.Is(err, nats.ErrNoResponders) {
		return j, stopFollowing
	}
	v, err := views.New(views.Config{
		Conns: conns, Journal: j, Retention: retention, Linger: time.Millisecond,
		IsReleased: func(context.Context, domain.HubID) (bool, error) { return false, nil },
		Logger:     slog.New(slog.DiscardHandler),
	})
	streamstest.Must(t, err)
	ready := make(chan struct{}, 1)
	stopWriting := streamstest.Run(t, "journal writer", func(ctx context.Context) error {
		return j.Write(ctx, 0, journal.Lease{
			Held: func() bool { return true }, Begin: v.Begin, Ready: func() {
				select {
				case ready <- struct{}{}:
				default:
				}
			},
		})
	})
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("no journal is written after a minute")
	}
	stopViews := streamstest.Run(t, "views", func(ctx context.Context) error { return v.Run(ctx, 0) })
	return j, func() {
		stopViews()
		stopWriting()
		stopFollowing()
	}
}

// Follow is Open without writing. stop ends the Journal before the test ends. A Journal whose
// connection is closed, as if its process had been killed, ends by itself.
func Follow(
	t testing.TB, conns *streams.Conns, retention time.Duration,
) (j *journal.Journal, stop func()) {
	t.Helper()
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	j, err := journal.New(journal.Config{
		Conn: conns.Cloud, Shards: len(conns.Shards), Retention: retention,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = j.Open(t.Context())
	}
	streamstest.Must(t, err)
	return j, streamstest.Run(t, "journal", func(ctx context.Context) error {
		err := j.Run(ctx)
		if errors.Is(err, nats.ErrConnectionClosed) {
			<-ctx.Done()
			return nil
		}
		return err
	})
}

// Await returns once the stream of a hub's log has everything up to a sequence.
func Await(t testing.TB, conns *streams.Conns, hub domain.HubID, seq uint64) {
	t.Helper()
	streamstest.EventuallyNil(t, "the stream of "+string(hub)+" is complete", func() error {
		info, err := jsapi.New(conns.Shard(hub)).Info(t.Context(), streams.HubStream(hub))
		if err == nil && info.State.LastSeq < seq {
			err = fmt.Errorf("it ends at %d, want %d", info.State.LastSeq, seq)
		}
		return err
	})
}
