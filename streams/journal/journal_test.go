package journal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestInvalidConfigs(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	for want, cfg := range map[string]Config{
		"Conn: must be set":              {Retention: time.Hour},
		"Groups: is 17, must be 1 to 16": {Conn: nc, Retention: time.Hour, Groups: 17},
		"Retention is 0s":                {Conn: nc},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error with %q", err, want)
		}
	}
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	open(t, conns, Config{Groups: 2, Retention: time.Hour})
	open(t, conns, Config{Groups: 2, Retention: 2 * time.Hour}) // another retention
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	for group := range 2 {
		stream, err := js.Stream(t.Context(), streams.JournalStream(group))
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().Config.MaxAge; got != 3*time.Hour {
			t.Errorf("retention of group %d is %v, want the new one, 2 h, and an hour more", group, got)
		}
	}
	// Nobody can remove a commit from the middle.
	stream, err := js.Stream(t.Context(), streams.JournalStream(0))
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, open(t, conns, Config{Groups: 2, Retention: 2 * time.Hour}), NewIndex(0))
	s.store(hubA)
	if err := stream.DeleteMsg(t.Context(), 1); err == nil {
		t.Error("a commit was deleted")
	}
	if err := stream.Purge(t.Context()); err == nil {
		t.Error("the journal was purged")
	}
	edit(t, conns.Cloud, func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 })
	j, err := New(Config{Conn: conns.Cloud, Retention: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Declare(t.Context()); !errors.Is(err, streams.ErrIncompatible) {
		t.Errorf("Declare over a limited journal: %v, want ErrIncompatible", err)
	}
}
