package projectionstest

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"hubcloud/streams/streamstest"
)

// Shared returns the Backend that all tests of a package share. The first call starts it, and Main
// stops it after the last test. Each test creates an organization of its own.
func Shared() *Backend { return shared.start() }

var shared sharedBackend

type sharedBackend struct {
	once    sync.Once
	backend *Backend
	tb      packageTB
}

func (s *sharedBackend) start() *Backend {
	s.once.Do(func() {
		s.tb.ctx, s.tb.cancel = context.WithCancel(context.Background())
		s.backend = StartBackend(&s.tb)
	})
	return s.backend
}

func (s *sharedBackend) stop() {
	if s.backend == nil {
		return
	}
	s.tb.cancel()
	for _, cleanup := range slices.Backward(s.tb.cleanups) {
		cleanup()
	}
}

// packageTB is the testing.TB of the shared backend, which outlives single tests. It has the
// methods that StartBackend and the cleanups use; another method panics.
type packageTB struct {
	testing.TB
	ctx      context.Context // of all tests, like that of testing.TB.Context
	cancel   context.CancelFunc
	cleanups []func()
}

func (*packageTB) Helper()                    {}
func (*packageTB) Output() io.Writer          { return io.Discard }
func (t *packageTB) Context() context.Context { return t.ctx }
func (t *packageTB) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }

func (t *packageTB) TempDir() string {
	dir, err := os.MkdirTemp("", "projectionstest")
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (*packageTB) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (*packageTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*packageTB) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
