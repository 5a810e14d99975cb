package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// writersAtOnce is the number of hubs that are read concurrently: as many as the broker answers
	// concurrently.
	writersAtOnce = 16
	// stuckTimeout is how long an ending tap waits for an unfinished write.
	stuckTimeout = 500 * time.Millisecond
	// drainPoll is the pause between two checks whether a pipe has been read to its end.
	drainPoll = 5 * time.Millisecond
)

// Writer is an Output that writes records as lines to a file, a pipe or another io.Writer.
type Writer struct {
	out    io.Writer
	format Format
	// lock is a mutex that can be waited for with a context.
	lock chan struct{}
	// buffer and broken are guarded by lock.
	buffer []byte
	broken error

	// written counts the bytes that out has accepted.
	written atomic.Int64
}

// NewWriter returns a Writer. If out is a file, Flush syncs it. If out is a pipe, Flush waits until
// everything has been read from it, on systems that report this.
func NewWriter(out io.Writer, format Format) *Writer {
	return &Writer{out: out, format: format, lock: make(chan struct{}, 1)}
}

// Writers returns the number of concurrent calls of Write that make sense.
func (w *Writer) Writers() int { return writersAtOnce }

// Write writes the records with one system call. It returns ErrReaderGone if the other end of a
// pipe is closed.
func (w *Writer) Write(ctx context.Context, records []Record) (err error) {
	select {
	case w.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.lock }()
	if w.broken != nil {
		return w.broken
	}
	w.buffer = w.buffer[:0]
	if file, ok := w.out.(*os.File); ok && w.written.Load() == 0 && torn(file) {
		// A killed tap may have left half a line: end it, so that it does not spoil the next one.
		w.buffer = append(w.buffer, '\n')
	}
	for _, r := range records {
		if w.buffer, err = w.format.Append(w.buffer, r); err != nil {
			return err
		}
		w.buffer = append(w.buffer, '\n')
	}
	if err = w.write(ctx); err != nil {
		w.broken = err
	}
	return err
}

// write writes the buffer. If ctx ends during a write to a pipe without a reader, the write is
// abandoned, since it cannot be interrupted, and the Writer is broken.
func (w *Writer) write(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		n, err := w.out.Write(w.buffer)
		w.written.Add(int64(n))
		done <- err
	}()
	select {
	case err := <-done:
		return writeError(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return writeError(err)
	case <-time.After(stuckTimeout):
		w.buffer = nil // the abandoned write still uses it
		return ctx.Err()
	}
}

func writeError(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return ErrReaderGone
	}
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Flush returns once everything written is on disk (file) or has been read (pipe). It returns
// ErrReaderGone if a pipe has no reader. For other outputs it does nothing.
func (w *Writer) Flush(ctx context.Context) error {
	file, ok := w.out.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	switch {
	case info.Mode().IsRegular():
		return file.Sync()
	case info.Mode()&os.ModeNamedPipe != 0:
		return w.drained(ctx, file)
	}
	return nil
}

// drained waits until everything written so far has been read from the pipe.
func (w *Writer) drained(ctx context.Context, pipe *os.File) error {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for target := w.written.Load(); ; {
		written := w.written.Load()
		waiting, err := inPipe(pipe)
		if err != nil || written-int64(waiting) >= target {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
