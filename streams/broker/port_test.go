package broker_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// onWarning is a log that calls a function at the first warning.
type onWarning struct {
	slog.Handler
	do func()
}

func (h onWarning) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (h onWarning) Handle(context.Context, slog.Record) error { h.do(); return nil }

func (h onWarning) WithAttrs([]slog.Attr) slog.Handler { return h }

// TestPortOfTheDurableServer checks that the durable server listens on its former port after a
// restart, and on another one if a program has taken that port before the start or during it.
func TestPortOfTheDurableServer(t *testing.T) {
	t.Parallel()
	cfg := config(t, t.TempDir())
	first := start(t, cfg)
	fill(t, connect(t, first))
	stop(t, first)
	// Outgoing connections of other programs could take a port that the system has chosen.
	former := "nats://" + streamstest.FreeAddress(t)
	file := filepath.Join(cfg.DataDir, "nats-credentials.json")
	credentials := first.Credentials()
	credentials.CloudURL = former
	streamstest.Must(t, credentials.Write(file))
	second := start(t, cfg)
	if got := second.Credentials().CloudURL; got != former {
		t.Errorf("after a restart: got %s, want %s", got, former)
	}
	stop(t, second)
	take := func() net.Listener {
		taken, err := net.Listen("tcp", strings.TrimPrefix(former, "nats://"))
		if err != nil {
			t.Error(err)
		}
		return taken
	}
	works := func(t *testing.T) {
		s := start(t, cfg)
		defer stop(t, s)
		c := s.Credentials()
		if c.CloudURL == former {
			t.Errorf("got %s, which another program has", former)
		}
		conns, err := streams.Connect(t.Context(), c)
		streamstest.Must(t, err)
		conns.Close()
		former = c.CloudURL
	}
	t.Run("taken before the start", func(t *testing.T) {
		defer take().Close()
		works(t)
	})
	t.Run("taken during the start", func(t *testing.T) {
		// The broker repairs a checksum, and logs that, after it has chosen the port.
		sums := metaFiles(t, cfg.DataDir, "meta.sum")
		streamstest.Must(t, os.Remove(sums[0]))
		var taken net.Listener
		cfg.Logger = slog.New(onWarning{slog.DiscardHandler, sync.OnceFunc(func() {
			taken = take()
		})})
		works(t)
		if taken == nil {
			t.Fatal("the port was not taken")
		}
		taken.Close()
	})
}
