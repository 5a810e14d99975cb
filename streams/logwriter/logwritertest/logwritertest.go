// Package logwritertest opens journals on a test's broker.
package logwritertest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/logwriter"
	"hubcloud/streams/streamstest"
)

// Open returns a Router that runs until the test ends or stop is called. It also writes the
// journal, unless another Router on the same broker does.
func Open(
	t testing.TB, conns *streams.Conns, retention time.Duration,
) (r *logwriter.Router, stop func()) {
	t.Helper()
	r, stopFollowing := Follow(t, conns, retention)
	_, err := conns.Cloud.Request(streams.AppendSubject(0), nil, time.Minute)
	if !errors.Is(err, nats.ErrNoResponders) {
		return r, stopFollowing
	}
	ready := make(chan struct{}, 1)
	stopWriting := streamstest.Run(t, "journal writer", func(ctx context.Context) error {
		return r.Serve(ctx, 0, func() bool { return true }, func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		})
	})
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("no journal is written after a minute")
	}
	return r, func() {
		stopWriting()
		stopFollowing()
	}
}

// Follow is Open without writing the journal. stop ends the Router before the test ends. A Router
// whose connection is closed, as if its process had been killed, ends by itself.
func Follow(
	t testing.TB, conns *streams.Conns, retention time.Duration,
) (r *logwriter.Router, stop func()) {
	t.Helper()
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	r, err := logwriter.New(logwriter.Config{
		Conns: conns, Groups: 1, Retention: retention, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = r.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, streamstest.Run(t, "journal", func(ctx context.Context) error {
		err := r.Run(ctx)
		if errors.Is(err, nats.ErrConnectionClosed) {
			<-ctx.Done()
			return nil
		}
		return err
	})
}
