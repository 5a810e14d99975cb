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

func TestGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shards    int
		clustered bool
		want      int
	}{{64, false, 1}, {64, true, 16}, {16, true, 16}, {4, true, 4}, {1, true, 1}} {
		groups := Groups(c.shards, c.clustered)
		if groups != c.want {
			t.Errorf("Groups(%d, %t) = %d, want %d", c.shards, c.clustered, groups, c.want)
		}
		used := map[int]bool{}
		for shard := range c.shards {
			used[GroupOf(shard, groups)] = true
		}
		if len(used) != groups || used[-1] || used[groups] {
			t.Errorf("%d shards are in the groups %v, want all of %d", c.shards, used, groups)
		}
	}
}

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
