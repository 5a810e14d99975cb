package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hubcloud/cmd/hubcloud/internal/datadir"
)

// /readyz answered 200 while endpoints.json was not there yet: a program that waited for the one
// did not find the other.
func TestReadyOnlyWithEndpoints(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	logger := slog.New(slog.DiscardHandler)
	s := &Server{
		dir:    datadir.Dir(dir),
		logger: logger,
		health: &health{logger: logger, conditions: map[string]*condition{}, components: []component{
			{"part", func(context.Context) (string, *problem) { return "fine", nil }},
		}},
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
		t.Error("ready before the start is over")
	}
	if err := s.finishStart(t.Context()); err == nil {
		t.Error("a data directory that is not there was synced")
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
		t.Errorf("after the start: ready is %v, endpoints.json: %v", ready(), err)
	}
}

// A full disk at the end of a start ended the process. The start waits in place, and its files are
// there once there is room; it ends when it is told to, or when a part of the service fails.
func TestAFullDiskAtTheEndOfAStart(t *testing.T) {
	t.Parallel()
	failed := errors.New("a part has failed")
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		full := &os.PathError{Op: "write", Path: "endpoints.json", Err: number}
		s := &Server{logger: slog.New(slog.DiscardHandler), failed: make(chan error, 1)}
		tries := 0
		write := func() error {
			if tries++; tries < 3 {
				return full
			}
			return nil
		}
		if err := s.writeOrPostpone("service.json", write); err != nil || len(s.postponed) != 1 {
			t.Errorf("%v: kept %d files for later, %v", number, len(s.postponed), err)
		}
		if err := s.writeWithRoom(t.Context(), s.postponed[0]); err != nil || tries != 3 {
			t.Errorf("%v: %d tries, %v; want 3", number, tries, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.writeWithRoom(ctx, func() error { return full }); !errors.Is(
			err, context.Canceled,
		) {
			t.Errorf("told to stop: %v", err)
		}
		s.failed <- failed
		if err := s.writeWithRoom(t.Context(), func() error { return full }); !errors.Is(
			err, failed,
		) {
			t.Errorf("a part that failed: %v", err)
		}
	}
	s := &Server{logger: slog.New(slog.DiscardHandler)}
	if err := s.writeOrPostpone("service.json", func() error { return os.ErrPermission }); !errors.Is(
		err, os.ErrPermission,
	) ||
		len(s.postponed) > 0 {
		t.Errorf("another error: %v, %d files for later", err, len(s.postponed))
	}
}
