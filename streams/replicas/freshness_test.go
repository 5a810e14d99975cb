package replicas_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/replicas"
)

// view is a view of the directory as a test wants it.
type view struct {
	*replicas.Freshness
	away, rejected, cutOff, clustered atomic.Bool
}

// startView runs in a bubble: its clock is the test's.
func startView(t *testing.T) *view {
	v := &view{}
	var err error
	v.Freshness, err = replicas.NewFreshness(replicas.FreshnessConfig{
		Refresh: func(ctx context.Context) error {
			switch {
			case v.rejected.Load():
				return errors.New("no leader")
			case !v.away.Load():
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		},
		CutOff: v.cutOff.Load, Clustered: v.clustered.Load, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if err := v.Confirm(t.Context()); err != nil {
		t.Fatalf("with the directory at hand: %v", err)
	}
	return v
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func isUnavailable(err error) bool {
	var known *domain.Error
	return errors.As(err, &known) && known.Code == domain.CodeServiceUnavailable &&
		known.RetryAfter > 0
}

// A revoked key worked for as long as its replica was cut off from the broker. Now the replica acts
// by what it last heard for one second, then answers service_unavailable, and what is open ends
// within three.
func TestAViewThatCannotBeConfirmedIsNotActedUpon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := startView(t)
		lost := v.Lost()
		v.away.Store(true)
		began := time.Now()
		time.AfterFunc(2*time.Second, func() { v.cutOff.Store(true) }) // as Reach finds out
		if err := v.Confirm(t.Context()); err != nil {
			t.Errorf("a moment after the last confirmation: %v", err)
		}
		time.Sleep(1100 * time.Millisecond)
		if err := v.Confirm(t.Context()); !isUnavailable(err) {
			t.Errorf("cut off: %v, want service_unavailable", err)
		}
		if took := time.Since(began); took > 3*time.Second || !isClosed(lost) || v.Err() == nil {
			t.Errorf("after %v; lost: %t, %v", took, isClosed(lost), v.Err())
		}
		// From now on nobody waits.
		began = time.Now()
		if err := v.Confirm(t.Context()); !isUnavailable(err) || time.Since(began) > 0 {
			t.Errorf("later: %v after %v", err, time.Since(began))
		}
		v.away.Store(false)
		v.cutOff.Store(false)
		time.Sleep(3 * time.Second)
		if err := v.Confirm(t.Context()); err != nil || isClosed(v.Lost()) || v.Err() != nil {
			t.Errorf("the directory is heard again: %v, lost %t", err, isClosed(v.Lost()))
		}
	})
}

// While a cluster elects a leader requests wait, and streams stay open.
func TestAnElectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := startView(t)
		lost := v.Lost()
		v.away.Store(true)
		time.Sleep(1500 * time.Millisecond)
		time.AfterFunc(8*time.Second, func() { v.away.Store(false) })
		if err := v.Confirm(t.Context()); err != nil {
			t.Errorf("after an election of 9.5 s: %v", err)
		}
		if isClosed(lost) {
			t.Error("streams were ended")
		}
		v.away.Store(true)
		time.Sleep(1500 * time.Millisecond)
		began := time.Now()
		if err := v.Confirm(t.Context()); !isUnavailable(err) ||
			time.Since(began) > 16*time.Second ||
			time.Since(began) < 13*time.Second {
			t.Errorf("without end: %v after %v", err, time.Since(began))
		}
	})
}

// The leader of a cluster that was stopped answers for a moment when it wakes up, before it hears
// that it was deposed.
func TestOneAnswerAfterASilenceIsNotEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := startView(t)
		v.clustered.Store(true)
		v.rejected.Store(true)
		time.Sleep(10 * time.Second)
		confirmed := make(chan time.Time, 1)
		go func() {
			if v.Confirm(t.Context()) == nil {
				confirmed <- time.Now()
			}
		}()
		v.rejected.Store(false)
		time.Sleep(900 * time.Millisecond)
		v.rejected.Store(true)
		time.Sleep(100 * time.Millisecond)
		v.rejected.Store(false)
		back := time.Now()
		if at := <-confirmed; at.Sub(back) < time.Second || at.Sub(back) > 2*time.Second {
			t.Errorf("confirmed %v after the leader was back", at.Sub(back))
		}
	})
}
