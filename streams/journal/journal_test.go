package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestDeclare(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	open(t, conns, Config{Groups: 2, Retention: time.Hour})
	open(t, conns, Config{Groups: 2, Retention: 2 * time.Hour}) // another retention
	api := jsapi.New(conns.Cloud)
	for group := range 2 {
		info, err := api.Info(t.Context(), streams.JournalStream(group))
		streamstest.Must(t, err)
		if got := info.Config.MaxAge; got != 3*time.Hour {
			t.Errorf("retention of group %d is %v, want the new one, 2 h, and an hour more", group, got)
		}
	}
	// Nobody can remove a commit from the middle.
	s := begin(t, open(t, conns, Config{Groups: 2, Retention: 2 * time.Hour}), NewIndex(0))
	s.store(hubA)
	if err := api.Erase(t.Context(), streams.JournalStream(0), 1); err == nil {
		t.Error("a commit was deleted")
	}
	if err := api.Purge(t.Context(), streams.JournalStream(0), "", 2); err == nil {
		t.Error("the journal was purged")
	}
	edit(t, conns.Cloud, func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 })
	j, err := New(Config{Conn: conns.Cloud, Retention: 2 * time.Hour})
	streamstest.Must(t, err)
	if err := j.Declare(t.Context()); !errors.Is(err, streams.ErrIncompatible) {
		t.Errorf("Declare over a limited journal: %v, want ErrIncompatible", err)
	}
}

// edit changes the stream of the journal of group 0.
func edit(t *testing.T, nc *nats.Conn, change func(*jetstream.StreamConfig)) {
	t.Helper()
	js, err := jetstream.New(nc)
	streamstest.Must(t, err)
	stream, err := js.Stream(t.Context(), streams.JournalStream(0))
	streamstest.Must(t, err)
	config := stream.CachedInfo().Config
	change(&config)
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// limit makes the journal reject what exceeds so many messages; -1 is no limit.
func limit(t *testing.T, nc *nats.Conn, messages int64) {
	t.Helper()
	edit(t, nc, func(c *jetstream.StreamConfig) {
		c.MaxMsgs, c.Discard = messages, jetstream.DiscardNew
	})
}

// keep drops all but the last commits of the journal, as when they have expired.
func keep(t *testing.T, nc *nats.Conn, last int64) {
	t.Helper()
	edit(t, nc, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = last, jetstream.DiscardOld })
	edit(t, nc, func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
}
