package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hubcloud/cmd/hubcloud/internal/installation"
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
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.finishStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.dir.Endpoints(); err != nil || !ready() {
		t.Errorf("after finishStart: ready is %v, endpoints.json: %v", ready(), err)
	}
}

// A full disk at the end of a start ended the process. The start waits instead and writes its files
// once the disk has space, unless the server is stopped or a part of it fails.
func TestFullDiskAtTheEndOfAStart(t *testing.T) {
	t.Parallel()
	failed := errors.New("a part has failed")
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		full := &os.PathError{Op: "write", Path: "endpoints.json", Err: number}
		s := &process{logger: slog.New(slog.DiscardHandler), failed: make(chan error, 1)}
		tries := 0
		write := func() error {
			if tries++; tries < 3 {
				return full
			}
			return nil
		}
		if err := s.writeOrPostpone("service.json", write); err != nil || len(s.postponed) != 1 {
			t.Errorf("%v: postponed %d files, %v; want 1", number, len(s.postponed), err)
		}
		if err := s.writeWhenSpace(t.Context(), s.postponed[0]); err != nil || tries != 3 {
			t.Errorf("%v: %d tries, %v; want 3", number, tries, err)
		}
		alwaysFull := func() error { return full }
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.writeWhenSpace(ctx, alwaysFull); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: got %v, want %v", err, context.Canceled)
		}
		s.failed <- failed
		if err := s.writeWhenSpace(t.Context(), alwaysFull); !errors.Is(err, failed) {
			t.Errorf("a part failed: got %v, want %v", err, failed)
		}
	}
	s := &process{logger: slog.New(slog.DiscardHandler)}
	err := s.writeOrPostpone("service.json", func() error { return os.ErrPermission })
	if !errors.Is(err, os.ErrPermission) || len(s.postponed) > 0 {
		t.Errorf("another error: got %v and %d postponed files", err, len(s.postponed))
	}
}
