package tap_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

func record(text string) tap.Record {
	return tap.Record{Hub: hubID(1), Type: "t", ID: text, Envelope: []byte(`{"n":"` + text + `"}`)}
}

func pipe(t testing.TB) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	streamstest.Must(t, err)
	t.Cleanup(func() {
		_ = reader.Close() // some tests have closed it
		_ = writer.Close()
	})
	return reader, writer
}

// TestWriterFlush checks that Flush waits until the reader has read everything.
func TestWriterFlush(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system does not report the number of bytes in a pipe")
	}
	reader, writer := pipe(t)
	w := tap.NewWriter(writer, tap.NDJSON)
	streamstest.Must(t, w.Write(t.Context(), []tap.Record{record("a"), record("b")}))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Flush with unread records: got %v, want DeadlineExceeded", err)
	}
	flushed := make(chan error, 1)
	go func() { flushed <- w.Flush(t.Context()) }()
	text := make([]byte, 1000)
	n, err := reader.Read(text)
	if err != nil || strings.Count(string(text[:n]), "\n") != 2 {
		t.Fatalf("read: got %q, error %v, want two lines", text[:n], err)
	}
	if err := <-flushed; err != nil {
		t.Errorf("Flush after the read: got %v, want nil", err)
	}
	// A record that nobody has read is lost when the reader goes: it must not count as delivered.
	streamstest.Must(t, w.Write(t.Context(), []tap.Record{record("c")}))
	streamstest.Must(t, reader.Close())
	if err := w.Flush(t.Context()); !errors.Is(err, tap.ErrReaderGone) {
		t.Errorf("Flush without a reader: got %v, want ErrReaderGone", err)
	}
}

// TestWriterBlocked checks that a write to a full pipe ends with its context.
func TestWriterBlocked(t *testing.T) {
	t.Parallel()
	reader, writer := pipe(t)
	w := tap.NewWriter(writer, tap.NDJSON)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			err = w.Write(ctx, []tap.Record{record(strings.Repeat("x", 4000))})
		}
		done <- err
	}()
	if _, err := reader.Read(make([]byte, 1)); err != nil { // the writes have begun
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Write: got %v, want context.Canceled", err)
	}
	if err := reader.Close(); err != nil { // ends the abandoned write
		t.Fatal(err)
	}
}

// TestTapToAPipe checks that a checkpoint covers only what was read from the pipe, and that a
// reader that closes the pipe ends the tap.
func TestTapToAPipe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system does not report the number of bytes in a pipe")
	}
	r := newTestHubs(t, time.Hour)
	r.store(hubID(1), 5)
	path := filepath.Join(t.TempDir(), "tap.checkpoint")
	reader, writer := pipe(t)
	u := r.start(
		tap.Config{
			Follow:          true,
			Output:          tap.NewWriter(writer, tap.NDJSON),
			Checkpoint:      path,
			CheckpointEvery: 5 * time.Millisecond,
		},
	)
	text := make([]byte, 1<<16)
	if _, err := reader.Read(text); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the checkpoint has 5 events of the hub", func() bool {
		at, err := readCheckpoint(path)
		return err == nil && at[hubID(1)].Seq == 5
	})
	r.store(hubID(1), 5)
	streamstest.Must(t, reader.Close())
	if err := u.wait(); !errors.Is(err, tap.ErrReaderGone) {
		t.Errorf("Run: got %v, want ErrReaderGone", err)
	}
	at, err := readCheckpoint(path)
	if err != nil || at[hubID(1)].Seq != 5 {
		t.Errorf("checkpoint: got %d, error %v, want 5", at[hubID(1)].Seq, err)
	}
}

// TestTornLine checks that a tap continues a file that ends in the middle of a line on a new line.
func TestTornLine(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system does not read the end of a file that is open for writing only")
	}
	for before, want := range map[string]string{
		"": "", "{}\n": "{}\n", "{}\n{\"cur": "{}\n{\"cur\n",
	} {
		path := filepath.Join(t.TempDir(), "events")
		streamstest.Must(t, os.WriteFile(path, []byte(before), 0o600))
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		streamstest.Must(t, err)
		w := tap.NewWriter(file, tap.NDJSON)
		for range 2 {
			streamstest.Must(t, w.Write(t.Context(), []tap.Record{record("a")}))
		}
		streamstest.Must(t, file.Close())
		got, err := os.ReadFile(path)
		rest, ok := strings.CutPrefix(string(got), want)
		if err != nil || !ok || strings.Count(rest, "\n") != 2 ||
			!strings.HasPrefix(rest, `{"n":"a"`) {
			t.Errorf("file of %q: got %q, error %v, want %q and two lines", before, got, err, want)
		}
	}
}
