package journal

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

// limit makes the journal of group 0 reject what exceeds so many messages, and returns a function
// that changes the limit again.
func limit(t *testing.T, nc *nats.Conn, messages int64) (change func(messages int64)) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	change = func(messages int64) {
		t.Helper()
		stream, err := js.Stream(t.Context(), streams.JournalStream(0))
		if err != nil {
			t.Fatal(err)
		}
		config := stream.CachedInfo().Config
		config.MaxMsgs, config.Discard = messages, jetstream.DiscardNew
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	change(messages)
	return change
}
