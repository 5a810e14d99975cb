package main

import (
	"context"
	"errors"
	"testing"
)

func TestCrew(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	c := newCrew(failed)
	broken := errors.New("broken")
	c.run("steady", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	c.run("fragile", func(context.Context) error { return broken })
	if err := <-failed; !errors.Is(err, broken) || err.Error() != "fragile: broken" {
		t.Errorf("%v", err)
	}
	c.stop()
	select {
	case err := <-failed:
		t.Errorf("a loop that was stopped failed: %v", err)
	default:
	}
}
