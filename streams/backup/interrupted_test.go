package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// cancelAfter returns a context and a Config.Progress that cancels the context at its nth call.
func cancelAfter(t *testing.T, n int) (context.Context, func(Progress)) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	calls := 0
	return ctx, func(Progress) {
		if calls++; calls == n {
			cancel()
		}
	}
}

// TestInterruptedBackup checks that an interrupted backup is rejected as unfinished, and that
// nothing is written to its folder, nor to one with other files.
func TestInterruptedBackup(t *testing.T) {
	t.Parallel()
	i := newTestInstallation(t, 3, 10)
	for n := 1; n < 24; n += 2 {
		ctx, progress := cancelAfter(t, n)
		dir := filepath.Join(t.TempDir(), "backup")
		_, err := Write(ctx, i.Conns, Config{Dir: dir, Format: 1, HubLogs: true, Progress: progress})
		if err == nil {
			t.Errorf("Write, interrupted at step %d: got nil, want an error", n)
		}
		if _, err := Check(t.Context(), dir, 1, nil); !errors.Is(err, ErrUnfinished) {
			t.Errorf("Check, interrupted at step %d: got %v, want ErrUnfinished", n, err)
		}
		_, err = Write(t.Context(), i.Conns, Config{Dir: dir, Format: 1})
		if err == nil || !strings.Contains(err.Error(), "not finished: remove") {
			t.Errorf("Write to the same folder: got %v, want the advice to remove it", err)
		}
	}
	// A folder with other files.
	dir := t.TempDir()
	streamstest.Must(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
	if _, err := Write(t.Context(), i.Conns, Config{Dir: dir, Format: 1}); err == nil ||
		!strings.Contains(err.Error(), "not empty") {
		t.Errorf("Write: got %v, want that the folder is not empty", err)
	}
	if _, err := Check(t.Context(), dir, 1, nil); !errors.Is(err, ErrUnfinished) {
		t.Errorf("Check: got %v, want ErrUnfinished", err)
	}
	if _, err := Write(t.Context(), i.Conns, Config{}); err == nil {
		t.Error("Write without a folder: got nil, want an error")
	}
}

// TestInterruptedRestore checks that a broker with an interrupted restore is recognized, that the
// next restore starts over, and that a restored broker is not overwritten.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	dir, m := newTestInstallation(t, 3, 10).writeBackup(true)
	conns := streamstest.Start(t)
	for n := 1; n < 24; n += 4 {
		ctx, progress := cancelAfter(t, n)
		cfg := restoreConfig(dir)
		cfg.Progress = progress
		if err := Restore(ctx, conns, m, cfg); err == nil {
			t.Fatalf("Restore, interrupted at step %d: got nil, want an error", n)
		}
		if err := Unfinished(t.Context(), conns); !errors.Is(err, ErrRestoring) {
			t.Errorf("Unfinished, interrupted at step %d: got %v, want ErrRestoring", n, err)
		}
	}
	cfg, errAdopt := restoreConfig(dir), errors.New("adopt failed")
	cfg.Adopt = func(context.Context) error { return errAdopt }
	if err := Restore(t.Context(), conns, m, cfg); !errors.Is(err, errAdopt) {
		t.Fatalf("Restore with a failing Adopt: got %v, want its error", err)
	}
	cfg.Adopt = nil
	streamstest.Must(t, Restore(t.Context(), conns, m, cfg))
	to := openTestInstallation(t, conns)
	wantHead := m.Directory + 3 // each of three hubs has a new epoch
	if head, err := to.Log.Head(t.Context(), 0); err != nil || head != wantHead {
		t.Errorf("last event of the directory: got %d, error %v, want %d", head, err, wantHead)
	}
	if got := len(values(t, to.Presence)); got != 3 {
		t.Errorf("hubs with presence: got %d, want 3", got)
	}

	if err := Restore(t.Context(), conns, m, cfg); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("Restore over an installation: got %v, want ErrNotEmpty", err)
	}
	if head, err := to.Log.Head(t.Context(), 0); err != nil || head != wantHead {
		t.Errorf("last event after it: got %d, error %v, want %d", head, err, wantHead)
	}
	if err := Unfinished(t.Context(), conns); err != nil {
		t.Errorf("Unfinished after it: got %v, want nil", err)
	}
}

// TestRestoreRejectsOtherShards checks that a backup is not restored over another number of shards,
// where hub logs would be in the wrong accounts.
func TestRestoreRejectsOtherShards(t *testing.T) {
	t.Parallel()
	m := Manifest{Shards: 7}
	err := Restore(t.Context(), streamstest.Start(t), m, restoreConfig(t.TempDir()))
	if err == nil || !strings.Contains(err.Error(), "7 shards") {
		t.Errorf("got %v, want an error that names the backup's 7 shards", err)
	}
}
