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

// TestDamage flips one bit of each file of a backup, cuts each, and removes each: what is not what
// was written is refused by its name, and nothing is restored.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir, _ := newInstallation(t, 2, 3).take(true)
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 10 {
		t.Fatalf("the backup has the files %v, %v", names, err)
	}
	refused := func(what, path string) {
		t.Helper()
		name, _ := filepath.Rel(dir, path)
		_, err := Check(t.Context(), dir, nil)
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnfinished) ||
			!strings.Contains(err.Error(), filepath.ToSlash(name)) {
			t.Errorf("%s %s: %v", name, what, err)
		}
	}
	for _, path := range names {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write := func(content []byte) {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if len(content) > 0 {
			for _, at := range []int{0, len(content) / 2, len(content) - 1} {
				flipped := append([]byte{}, content...)
				flipped[at] ^= 1
				write(flipped)
				refused("with a bit flipped", path)
			}
			write(content[:len(content)-1])
			refused("cut by a byte", path)
			write(nil)
			refused("cut to nothing", path)
		}
		write(append(content[:len(content):len(content)], '\n'))
		refused("with a byte more", path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		refused("removed", path)
		write(content)
	}
	if _, err := Check(t.Context(), dir, nil); err != nil {
		t.Errorf("put together again: %v", err)
	}
}

// TestInterruptedBackup: what a backup leaves that was killed looks like none, and says what it is.
func TestInterruptedBackup(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 3, 10)
	for stop := range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		dir := filepath.Join(t.TempDir(), "backup")
		_, err := Write(ctx, i.conns, Config{Dir: dir, HubLogs: true, Tell: func(Progress) {
			if steps++; steps == 2*stop+1 {
				cancel()
			}
		}})
		if err == nil {
			t.Errorf("not interrupted after %d of %d steps", 2*stop+1, steps)
		}
		if _, err := Check(t.Context(), dir, nil); !errors.Is(err, ErrUnfinished) {
			t.Errorf("interrupted after %d steps: %v", steps, err)
		}
		_, err = Write(t.Context(), i.conns, Config{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "not finished: remove") {
			t.Errorf("another one into the same folder: %v", err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), i.conns, Config{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder that is in use: %v", err)
	}
	if _, err := Check(t.Context(), dir, nil); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a folder of something else: %v", err)
	}
}

// TestInterruptedRestore: a broker with half a restore is known for it, and restoring again begins
// from the start.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	from := newInstallation(t, 3, 10)
	dir, m := from.take(true)
	to := &installation{t: t, conns: streamstest.Start(t)}
	for stop := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		err := Restore(
			ctx,
			to.conns,
			m,
			RestoreConfig{Dir: dir, Replicas: 1, Origin: origin, Tell: func(Progress) {
				if steps++; steps == 4*stop+1 {
					cancel()
				}
			}},
		)
		cancel()
		if err == nil {
			t.Fatalf("not interrupted after %d of %d steps", 4*stop+1, steps)
		}
		if err := Unfinished(t.Context(), to.conns); !errors.Is(err, ErrRestoring) {
			t.Errorf("interrupted after %d steps: %v", steps, err)
		}
	}
	failed := errors.New("the last moment")
	again := RestoreConfig{
		Dir:      dir,
		Replicas: 1,
		Origin:   origin,
		Adopt:    func(context.Context) error { return failed },
	}
	if err := Restore(t.Context(), to.conns, m, again); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	again.Adopt = nil
	if err := Restore(t.Context(), to.conns, m, again); err != nil {
		t.Fatal(err)
	}
	to.open()
	if head, err := to.log.Head(t.Context(), 0); err != nil || head != m.Directory+3 {
		t.Errorf("the directory ends at %d, %v; it was taken up to %d", head, err, m.Directory)
	}
	if got := len(values(t, to.Presence)); got != 3 {
		t.Errorf("%d hubs have a presence", got)
	}

	// Over what is there already nothing is restored.
	if err := Restore(t.Context(), to.conns, m, again); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restored over an installation: %v", err)
	}
	if head, err := to.log.Head(t.Context(), 0); err != nil || head != m.Directory+3 ||
		Unfinished(t.Context(), to.conns) != nil {
		t.Errorf("it was touched: %d, %v", head, err)
	}
	m.Shards = 7
	if err := Restore(t.Context(), streamstest.Start(t), m, again); err == nil ||
		!strings.Contains(err.Error(), "7 shards") {
		t.Errorf("over another number of shards: %v", err)
	}
}
