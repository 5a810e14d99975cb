package cluster

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

func TestStartsStopsAndKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	c := start(t, dir)
	conn := connect(t, c.URL())
	var encoding, collation, fsync, addresses string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('server_encoding'), datcollate, current_setting('fsync'),
		current_setting('listen_addresses') FROM pg_database WHERE datname = current_database()`).Scan(&encoding, &collation, &fsync, &addresses); err != nil {
		t.Fatal(err)
	}
	if encoding != "UTF8" || collation != "C" || fsync != "on" || addresses != "" {
		t.Errorf(
			"got encoding %q, collation %q, fsync %q, addresses %q; want UTF8, C, on and none",
			encoding, collation, fsync, addresses,
		)
	}
	run(t, c.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	begun := time.Now()
	streamstest.Must(t, c.Stop(t.Context()))
	t.Logf("stop: %s", time.Since(begun))
	if _, err := os.Stat(socketFile(c.socket.path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket after Stop: got %v, want no such file", err)
	}
	if pids, err := servers(c.data); err != nil || len(pids) > 0 {
		t.Errorf("processes after Stop: got %v, %v, want none", pids, err)
	}
	begun = time.Now()
	again := start(t, dir)
	t.Logf("warm start: %s", time.Since(begun))
	if n := count(t, again.URL()); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
	if again.URL() != c.URL() {
		t.Errorf("URL after the second start: got %s, want %s", again.URL(), c.URL())
	}
}

func TestOneProcessHasTheDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgres")
	_, url := holder(t, dir)
	if _, err := Start(t.Context(), Config{
		Dir: dir, Logger: slog.New(slog.DiscardHandler),
	}); !errors.Is(err, ErrInUse) {
		t.Fatalf("second Start: got %v, want ErrInUse", err)
	}
	run(t, url, "SELECT 1")
}

// Tests and careful operators put their data into directories that only root may enter.
func TestRunsBelowAClosedDirectory(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	streamstest.Must(t, os.Mkdir(closed, 0o700))
	run(
		t, start(t, filepath.Join(closed, "postgres")).URL(),
		"CREATE TABLE kept AS SELECT 1 AS n; CHECKPOINT",
	)
}
