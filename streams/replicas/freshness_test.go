package replicas_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/replicas"
	"hubcloud/streams/streamstest"
)

// view is a Freshness whose directory and broker a test controls.
type view struct {
	*replicas.Freshness
	// away makes confirmations wait for an answer, rejected makes them fail at once.
	away, rejected    atomic.Bool
	cutOff, clustered atomic.Bool
}

// startView returns a running, confirmed view. It must be called within a synctest bubble.
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
		CutOff: v.cutOff.Load, Clustered: v.clustered.Load, Logger: streamstest.Logger(),
	})
	streamstest.Must(t, err)
	streamstest.Run(t, "view", v.Run)
	if err := v.Confirm(t.Context()); err != nil {
		t.Fatalf("Confirm with the directory in reach: %v, want nil", err)
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
// by its last confirmed view for one second, then answers service_unavailable, and ends open
// streams within three seconds.
func TestAnUnconfirmedViewExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := startView(t)
		lost := v.Lost()
		v.away.Store(true)
		began := time.Now()
		time.AfterFunc(2*time.Second, func() { v.cutOff.Store(true) }) // as Reach finds out
		if err := v.Confirm(t.Context()); err != nil {
			t.Errorf("Confirm a moment after the last confirmation: %v, want nil", err)
		}
		time.Sleep(1100 * time.Millisecond)
		if err := v.Confirm(t.Context()); !isUnavailable(err) {
			t.Errorf("Confirm while cut off: %v, want service_unavailable", err)
		}
		if took := time.Since(began); took > 3*time.Second || !isClosed(lost) || v.Err() == nil {
			t.Errorf(
				"after %v: lost %t, Err %v; want lost with an error within 3s", took,
				isClosed(lost), v.Err(),
			)
		}
		// From now on Confirm fails without waiting.
		began = time.Now()
		if err := v.Confirm(t.Context()); !isUnavailable(err) || time.Since(began) > 0 {
			t.Errorf(
				"Confirm once lost: %v after %v, want service_unavailable at once", err,
				time.Since(began),
			)
		}
		v.away.Store(false)
		v.cutOff.Store(false)
		time.Sleep(3 * time.Second)
		if err := v.Confirm(t.Context()); err != nil || isClosed(v.Lost()) || v.Err() != nil {
			t.Errorf(
				"Confirm with the directory in reach again: %v, lost %t; want nil, false", err,
				isClosed(v.Lost()),
			)
		}
	})
}

// While a cluster elects a leader, requests wait and streams stay open.
func TestConfirmWaitsForAnElection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := startView(t)
		lost := v.Lost()
		v.away.Store(true)
		time.Sleep(1500 * time.Millisecond)
		time.AfterFunc(8*time.Second, func() { v.away.Store(false) })
		if err := v.Confirm(t.Context()); err != nil {
			t.Errorf("Confirm after an election of 9.5 s: %v, want nil", err)
		}
		if isClosed(lost) {
			t.Error("Lost is closed after the election, want it open")
		}
		v.away.Store(true)
		time.Sleep(1500 * time.Millisecond)
		began := time.Now()
		if err := v.Confirm(t.Context()); !isUnavailable(err) ||
			time.Since(began) > 16*time.Second ||
			time.Since(began) < 13*time.Second {
			t.Errorf(
				"Confirm without a leader: %v after %v, want service_unavailable after 13s to 16s",
				err, time.Since(began),
			)
		}
	})
}

// A leader whose process was suspended answers for a moment when it continues, before it learns
// that it was deposed. So one answer after a silence does not confirm the view.
func TestOneAnswerAfterASilenceDoesNotConfirm(t *testing.T) {
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
			t.Errorf("confirmed %v after the leader was back, want 1s to 2s", at.Sub(back))
		}
	})
}
