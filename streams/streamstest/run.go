package streamstest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"
)

// Run runs something in a goroutine until stop is called, or until the test ends. It fails the test
// if run returns before stop, returns another error than context.Canceled, or does not return
// within a minute of stop.
func Run(t testing.TB, name string, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		defer cancel()
		select {
		case err := <-ended:
			t.Errorf("%s: ended before it was stopped: %v", name, err)
			return
		default:
		}
		cancel()
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got the error %v, want none", name, err)
			}
		case <-time.After(eventuallyDeadline):
			t.Errorf("%s: still running after %v", name, eventuallyDeadline)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Logger returns the logger for the parts that a test runs. It writes to standard error when the
// environment variable HUBCLOUD_TEST_LOG is set, and nothing otherwise.
func Logger() *slog.Logger {
	if os.Getenv("HUBCLOUD_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
