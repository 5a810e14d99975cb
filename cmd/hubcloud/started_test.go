package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// /readyz answered 200 while endpoints.json was not there yet: a program that waited for the one did not find the other.
func TestReadyOnlyWithEndpoints(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	logger := slog.New(slog.DiscardHandler)
	s := &service{dir: dataDir(dir), log: logger, health: &health{log: logger, known: map[string]*condition{}, parts: []part{
		{"part", func(context.Context) (string, *unwell) { return "fine", nil }},
	}}}
	ready := func() bool {
		all := s.health.components(t.Context())
		for _, c := range all {
			if !c.OK {
				return false
			}
		}
		return len(all) > 0
	}
	if ready() {
		t.Error("ready before the start is over")
	}
	if err := s.finishStart(); err == nil {
		t.Error("a data directory that is not there was synced")
	}
	if ready() {
		t.Error("ready although endpoints.json could not be written")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.finishStart(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dir.endpoints(); err != nil || !ready() {
		t.Errorf("after the start: ready is %v, endpoints.json: %v", ready(), err)
	}
}
