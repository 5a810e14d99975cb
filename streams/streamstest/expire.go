package streamstest

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// Expire removes all messages of a stream but the last kept, as if they had expired.
func Expire(t testing.TB, nc *nats.Conn, stream string, kept int64) {
	t.Helper()
	js := JetStream(t, nc)
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	for _, limit := range []int64{kept, cfg.MaxMsgs} {
		cfg.MaxMsgs = limit
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
}
