package server

import (
	"context"
	"errors"
	"testing"
)

func TestGroupReportsTheFirstFailureByName(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	g := newGroup(failed)
	broken := errors.New("broken")
	g.run("steady", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	g.run("fragile", func(context.Context) error { return broken })
	if err := <-failed; !errors.Is(err, broken) || err.Error() != "fragile: broken" {
		t.Errorf("failure is %q, want %q", err, "fragile: broken")
	}
	g.stop()
	select {
	case err := <-failed:
		t.Errorf("a stopped loop was reported as failed: %v", err)
	default:
	}
}

func TestGroupReportsALoopThatReturns(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	g := newGroup(failed)
	g.run("short", func(context.Context) error { return nil })
	if err := <-failed; err == nil || err.Error() != "short: returned before it was stopped" {
		t.Errorf("failure is %v", err)
	}
	g.stop()
}
