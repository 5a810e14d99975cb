package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/streamstest"
)

// /readyz answered 200 before endpoints.json existed: a program that waited for the former did not
// find the latter.
func TestReadyOnlyWithEndpoints(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	logger := slog.New(slog.DiscardHandler)
	healthy := component{"part", func(context.Context) (string, *problem) { return "fine", nil }}
	s := &process{
		dir: installation.Dir(dir), logger: logger,
		health: &health{
			logger: logger, conditions: map[string]*condition{}, components: []component{healthy},
		},
	}
	ready := func() bool {
		all := s.health.check(t.Context())
		for _, c := range all {
			if !c.OK {
				return false
			}
		}
		return len(all) > 0
	}
	if ready() {
		t.Error("ready before finishStart")
	}
	if err := s.finishStart(t.Context()); err == nil {
		t.Error("finishStart without a data directory returned no error")
	}
	if ready() {
		t.Error("ready although endpoints.json could not be written")
	}
	streamstest.Must(t, os.Mkdir(dir, 0o700))
	streamstest.Must(t, s.finishStart(t.Context()))
	if _, err := s.dir.Endpoints(); err != nil || !ready() {
		t.Errorf("after finishStart: ready is %v, endpoints.json: %v", ready(), err)
	}
}
