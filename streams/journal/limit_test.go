package journal

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

// edit changes the stream of the journal of group 0.
func edit(t *testing.T, nc *nats.Conn, change func(*jetstream.StreamConfig)) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streams.JournalStream(0))
	if err != nil {
		t.Fatal(err)
	}
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
