package cluster

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// wantNoHalfMade fails the test if dir has what an interrupted initdb has left.
func wantNoHalfMade(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, halfMade+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("half-made directories: got %v, %v, want none", left, err)
	}
}

// initdb takes a second. An interrupted one must not leave a half-made directory.
func TestAnInterruptedInitdbLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
			if half, err := filepath.Glob(
				filepath.Join(dir, halfMade+"*", "PG_VERSION"),
			); err == nil &&
				len(half) > 0 {
				return
			}
		}
	}()
	if _, err := Start(ctx, Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(
		err, context.Canceled,
	) {
		t.Fatalf("interrupted Start: got %v, want context.Canceled", err)
	}
	wantNoHalfMade(t, dir)
	// What a killed process leaves is removed by the next.
	streamstest.Must(t, os.MkdirAll(filepath.Join(dir, halfMade+"dead", "base"), 0o700))
	run(t, start(t, dir).URL(), "SELECT 1")
	wantNoHalfMade(t, dir)
}

// The server that initdb runs outlives a killed initdb by a moment. It made files in the directory
// that the next start was removing, and that start failed.
func TestStartsAtOnceAfterInitdbWasKilled(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"PG_VERSION", "global/pg_control", "base/1/1259", "base/4"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "postgres")
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), holdEnv+"="+dir)
			streamstest.Must(t, command.Start())
			for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
				if half, err := filepath.Glob(filepath.Join(dir, halfMade+"*", file)); err == nil &&
					len(half) > 0 {
					break
				}
				if _, err := os.Stat(filepath.Join(dir, "lock")); err == nil {
					if made, _ := existing(dir); len(made) > 0 {
						break // initdb finished first
					}
				}
			}
			streamstest.Must(t, command.Process.Kill())
			_ = command.Wait() // it was killed
			run(t, start(t, dir).URL(), "SELECT 1")
			wantNoHalfMade(t, dir)
		})
	}
}
