package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// TestCheckFindsDamage flips one bit of each file of a backup, cuts each, appends to each, and
// removes each: Check rejects the backup and names the file.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	dir, _ := newTestInstallation(t, 2, 3).writeBackup(true)
	var paths []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 10 {
		t.Fatalf("files of the backup: got %v, error %v, want at least 10", paths, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		streamstest.Must(t, err)
		write := func(content []byte) {
			streamstest.Must(t, os.WriteFile(path, content, 0o600))
		}
		wantDamaged := func(what string) {
			t.Helper()
			name, err := filepath.Rel(dir, path)
			streamstest.Must(t, err)
			_, err = Check(t.Context(), dir, 1, nil)
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnfinished) ||
				!strings.Contains(err.Error(), filepath.ToSlash(name)) {
				t.Errorf("Check, %s %s: got %v, want ErrDamaged with the name", name, what, err)
			}
		}
		if len(content) > 0 {
			for _, at := range []int{0, len(content) / 2, len(content) - 1} {
				flipped := append([]byte{}, content...)
				flipped[at] ^= 1
				write(flipped)
				wantDamaged("with a bit flipped")
			}
			write(content[:len(content)-1])
			wantDamaged("cut by a byte")
			write(nil)
			wantDamaged("cut to nothing")
		}
		write(append(content[:len(content):len(content)], '\n'))
		wantDamaged("with one more byte")
		streamstest.Must(t, os.Remove(path))
		wantDamaged("removed")
		write(content)
	}
	if _, err := Check(t.Context(), dir, 1, nil); err != nil {
		t.Errorf("Check of the repaired backup: got %v, want nil", err)
	}
}

// TestNewerBackup checks that a program rejects a backup of a newer format than it reads, and reads
// every earlier format.
func TestNewerBackup(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backup")
	conns := newTestInstallation(t, 1, 1).Conns
	if _, err := Write(t.Context(), conns, Config{Dir: dir, Format: 7}); err != nil {
		t.Fatal(err)
	}
	_, err := Check(t.Context(), dir, 6, nil)
	if err == nil || !strings.Contains(err.Error(), "format 7, and this program restores up to") {
		t.Errorf("Check by a program that reads format 6: got %v", err)
	}
	for _, newest := range []int{7, 8} {
		if m, err := Check(t.Context(), dir, newest, nil); err != nil || m.Format != 7 {
			t.Errorf("Check by a program that reads format %d: got %v", newest, err)
		}
	}
}
