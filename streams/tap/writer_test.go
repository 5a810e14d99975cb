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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = reader.Close() // some tests have closed it
		_ = writer.Close()
	})
	return reader, writer
}

// TestWriterReaderGone: a pipe without a reader is told as such, and stays so.
func TestWriterReaderGone(t *testing.T) {
	t.Parallel()
	reader, writer := pipe(t)
	w := tap.NewWriter(writer, tap.NDJSON)
	if err := w.Write(t.Context(), []tap.Record{record("a")}); err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	// What was not read is lost, and must not be taken for delivered.
	if runtime.GOOS == "linux" {
		if err := w.Flush(t.Context()); !errors.Is(err, tap.ErrReaderGone) {
			t.Errorf("flush: %v", err)
		}
	}
	for range 2 {
		if err := w.Write(t.Context(), []tap.Record{record("b")}); !errors.Is(
			err, tap.ErrReaderGone,
		) {
			t.Errorf("write: %v", err)
		}
	}
}

// TestWriterFlush: what is in a pipe is not delivered before its reader has taken it out.
func TestWriterFlush(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell how much is in a pipe")
	}
	reader, writer := pipe(t)
	w := tap.NewWriter(writer, tap.NDJSON)
	if err := w.Write(t.Context(), []tap.Record{record("a"), record("b")}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("flush of a full pipe: %v", err)
	}
	flushed := make(chan error, 1)
	go func() { flushed <- w.Flush(t.Context()) }()
	text := make([]byte, 1000)
	n, err := reader.Read(text)
	if err != nil || strings.Count(string(text[:n]), "\n") != 2 {
		t.Fatalf("%q, %v", text[:n], err)
	}
	if err := <-flushed; err != nil {
		t.Errorf("flush of an empty pipe: %v", err)
	}
}

// TestWriterStuck: a tap whose output nobody reads ends all the same.
func TestWriterStuck(t *testing.T) {
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
	full := make([]byte, 1)
	if _, err := reader.Read(full); err != nil { // it has begun
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := reader.Close(); err != nil { // lets the write go that was left behind
		t.Fatal(err)
	}
}

// TestTapIntoAPipe: a checkpoint covers only what was taken out of the pipe, and a reader that goes
// away ends the tap.
func TestTapIntoAPipe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell how much is in a pipe")
	}
	r := newRig(t, time.Hour)
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
		c, err := tap.ReadCheckpoint(path)
		return err == nil && c.Hubs[hubID(1)].Seq == 5
	})
	r.store(hubID(1), 5)
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.wait(); !errors.Is(err, tap.ErrReaderGone) {
		t.Errorf("%v", err)
	}
	c, err := tap.ReadCheckpoint(path)
	if err != nil || c.Hubs[hubID(1)].Seq != 5 {
		t.Errorf("the checkpoint is at %d, %v", c.Hubs[hubID(1)].Seq, err)
	}
}

// TestTapIntoAFile: the file has a line for each event.
func TestTapIntoAFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, time.Hour)
	r.store(hubID(1), 700)
	file, err := os.Create(filepath.Join(t.TempDir(), "events"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := r.start(tap.Config{Output: tap.NewWriter(file, tap.CloudEvents)}).wait(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil || strings.Count(string(text), "\n") != 700 ||
		!strings.HasSuffix(string(text), "}\n") {
		t.Errorf("%d lines, %v", strings.Count(string(text), "\n"), err)
	}
}

// TestTornLine: a file that a killed tap left in the midst of a line goes on with a new one.
func TestTornLine(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system does not show the end of a file that is only written")
	}
	for before, want := range map[string]string{
		"": "", "{}\n": "{}\n", "{}\n{\"cur": "{}\n{\"cur\n",
	} {
		path := filepath.Join(t.TempDir(), "events")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		w := tap.NewWriter(file, tap.NDJSON)
		for range 2 {
			if err := w.Write(t.Context(), []tap.Record{record("a")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		rest, ok := strings.CutPrefix(string(got), want)
		if err != nil || !ok || strings.Count(rest, "\n") != 2 ||
			!strings.HasPrefix(rest, `{"n":"a"`) {
			t.Errorf("%q becomes %q, %v", before, got, err)
		}
	}
}
