package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/disk"
	"hubcloud/streams/streamstest"
)

// A checkpoint has the last saved position, for its part only.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forward.checkpoint")
	for _, want := range []string{"", "first", "second"} {
		c, err := openCheckpoint(path, "2/8")
		if err != nil || c.position != want {
			t.Fatalf("got %+v, %v, want the position %q", c, err, want)
		}
		if _, err := openCheckpoint(path, "2/8"); !errors.Is(err, disk.ErrInUse) {
			t.Errorf("opened twice: got %v, want ErrInUse", err)
		}
		next := map[string]string{"": "first", "first": "second", "second": "third"}[want]
		streamstest.Must(t, errors.Join(c.save(next), c.save(next), c.close()))
	}
	if _, err := openCheckpoint(path, ""); err == nil || !strings.Contains(err.Error(), "2/8") {
		t.Errorf("another part: got %v, want an error that names the part 2/8", err)
	}
}

// Files that are no checkpoint are rejected with their path.
func TestDamagedCheckpoints(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":           "",
		"text":            "hello",
		"cut off":         `{"hubcloud_forward_checkpoint":1,"posi`,
		"another version": `{"hubcloud_forward_checkpoint":2,"position":"p"}`,
		"no version":      `{"position":"p"}`,
		"no position":     `{"hubcloud_forward_checkpoint":1}`,
		"another member":  `{"hubcloud_forward_checkpoint":1,"position":"p","x":1}`,
		"twice":           `{"hubcloud_forward_checkpoint":1,"position":"p"}{}`,
		"not a position":  `{"hubcloud_forward_checkpoint":1,"position":"p\nq"}`,
		"of the tap":      `{"hubcloud_tap_checkpoint":1,"hubs":{}}`,
		"large":           strings.Repeat(" ", 1<<20),
	} {
		path := filepath.Join(t.TempDir(), "file")
		streamstest.Must(t, os.WriteFile(path, []byte(text), 0o600))
		for range 2 { // the first attempt must not leave the lock
			_, err := openCheckpoint(path, "")
			if !errors.Is(err, disk.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: got %v, want %v with the path", name, err, disk.ErrDamaged)
			}
		}
	}
}
