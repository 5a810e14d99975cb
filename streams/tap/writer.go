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
	// writersAtOnce is how many hubs are read side by side for one writer: as many as the broker
	// answers at once.
	writersAtOnce = 16
	// stuckTimeout is how long an ending tap waits for a write that is under way.
	stuckTimeout = 500 * time.Millisecond
	// drainPoll is how often is looked whether a pipe's reader has taken everything.
	drainPoll = 5 * time.Millisecond
)

// Writer writes records as lines, to a file, a pipe or whatever else.
type Writer struct {
	out    io.Writer
	format Format
	// turn holds the one place of who writes.
	turn chan struct{}
	// Owned by who has the turn.
	buffer []byte
	broken error

	// written is how many bytes out has taken.
	written atomic.Int64
}

// NewWriter makes a Writer. When out is a file, Flush waits until it is on disk; when it is a pipe,
// until its reader has taken everything out of it, where the system tells.
func NewWriter(out io.Writer, format Format) *Writer {
	return &Writer{out: out, format: format, turn: make(chan struct{}, 1)}
}

// Writers is how many calls of Write are worthwhile at once.
func (w *Writer) Writers() int { return writersAtOnce }

// Write writes the records in one go. ErrReaderGone when the other end of a pipe is closed.
func (w *Writer) Write(ctx context.Context, records []Record) (err error) {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	if w.broken != nil {
		return w.broken
	}
	w.buffer = w.buffer[:0]
	if file, ok := w.out.(*os.File); ok && w.written.Load() == 0 && torn(file) {
		// A tap that was killed may have left half a line, which would spoil the next one.
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

// write writes the buffer. A write to a pipe that nobody reads cannot be broken off: it is left
// behind, and nothing is written any more.
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
		w.buffer = nil // the write has it
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

// Flush returns once what was written before is on disk, in a file, or has been taken out of a
// pipe. ErrReaderGone when nobody is left to do that.
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

// drained waits until a pipe's reader has taken all that is written by now.
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
