package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Shared is a service that the tests of a package share. A test that stops its service, or needs it
// alone, starts one of its own.
type Shared struct {
	// Args are the arguments of the service.
	Args []string

	mu     sync.Mutex
	target *Target // nil until a test wants it
}

// Target returns the service for a test. It runs until Main ends.
func (s *Shared) Target(t testing.TB) *Target {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.target == nil {
		s.target = NewTarget(wholeRun, s.Args...)
	}
	target := s.target
	t.Cleanup(func() {
		if t.Failed() && target.Owned() {
			t.Logf("last log lines of the service that tests share:\n%s", target.service.log)
		}
	})
	return target.For(t)
}

// wholeRun is the testing.TB of what outlives single tests.
var wholeRun = &runTB{}

// runTB has the methods of testing.TB that starts of a service and their cleanups use; another
// method panics.
type runTB struct {
	testing.TB

	failed   atomic.Bool
	mu       sync.Mutex
	cleanups []func()
}

func (r *runTB) Failed() bool { return r.failed.Load() }

func (*runTB) Helper()                  {}
func (*runTB) Context() context.Context { return context.Background() }
func (*runTB) Output() io.Writer        { return io.Discard }

func (r *runTB) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *runTB) TempDir() string {
	dir, err := os.MkdirTemp("", "hubcloud-test-run-")
	Must(r, err)
	r.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (*runTB) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (*runTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (r *runTB) Errorf(format string, args ...any) {
	r.failed.Store(true)
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// end runs the cleanups, the last first.
func (r *runTB) end() {
	for _, cleanup := range slices.Backward(r.cleanups) {
		cleanup()
	}
	r.cleanups = nil
}
