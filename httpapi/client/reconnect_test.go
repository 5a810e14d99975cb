package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/streams/streamstest"
)

// A stream that is silent for longer than two keepalives is reconnected; one whose caller is slow
// is not.
func TestStalledStreamsAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(t, nil, events(errSilent, frames("b")), events(errSilent, frames("c d")))
		began := time.Now()
		if got, err := followed(c.Events(t.Context(), "hub-1", "a"), 2); got != "b c" ||
			err != nil ||
			time.Since(began) < 75*time.Second ||
			time.Since(began) > 76*time.Second {
			t.Errorf("got %q after %s, %v, want b c after 75 s, nil", got, time.Since(began), err)
		}
		if positions(s) != "a b" {
			t.Errorf("read from %q, want a b", positions(s))
		}
		c, s = playing(t, nil, events(errSilent, frames("b c d")))
		n := 0
		for _, err := range c.Events(t.Context(), "hub-1", "a") {
			streamstest.Must(t, err)
			if time.Sleep(time.Hour); n == 2 { // the caller's work, on the bubble's clock
				break
			}
			n++
		}
		if positions(s) != "a" {
			t.Errorf("slow caller: read from %q, want one stream from a", positions(s))
		}
	})
}

// The wait before a reconnect grows after connections that receive nothing, and is short after one
// that lasted. The wait that the service asks for is kept.
func TestReconnectsAreSpread(t *testing.T) {
	t.Parallel()
	waits := func(s *script) (all []time.Duration) {
		seen := s.seen()
		for i := range len(seen) - 1 {
			all = append(all, seen[i+1].at.Sub(seen[i].at))
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(
			t, nil, events(nil), events(nil), events(nil), events(nil), events(nil), events(nil),
			events(nil), events(nil), events(nil), events(errSilent, frames("b")),
		)
		if _, err := followed(c.Events(t.Context(), "hub-1", "a"), 1); err != nil {
			t.Fatal(err)
		}
		for i, wait := range waits(s) {
			if full := min(10*time.Second, 200*time.Millisecond<<i); wait < full/2 || wait > full {
				t.Errorf("wait %d: got %s, want %s or up to half of it less", i, wait, full)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		quarter := func(r *http.Request) (*http.Response, error) {
			body, w := io.Pipe()
			context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
			go func() {
				for range 30 {
					time.Sleep(30 * time.Second)
					io.WriteString(w, ": keepalive\n\n")
				}
				w.Close()
			}()
			return respond(r, 200, body, "Content-Type", "text/event-stream"), nil
		}
		c, s := playing(
			t, nil, quarter, quarter, quarter, quarter, quarter, quarter, quarter, quarter,
			events(errSilent, frames("b")),
		)
		if _, err := followed(c.Events(t.Context(), "hub-1", "a"), 1); err != nil {
			t.Fatal(err)
		}
		for _, wait := range waits(s) {
			if wait < 15*time.Minute || wait > 15*time.Minute+200*time.Millisecond {
				t.Errorf("reconnected after %s, want 15 min of keepalives and up to 200ms", wait)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(
			t, nil, events(nil, "retry: 7000\n\n"), events(nil, "retry: 999999999\n\n"),
			events(errSilent, frames("b")),
		)
		if _, err := followed(c.Events(t.Context(), "hub-1", "a"), 1); err != nil {
			t.Fatal(err)
		}
		if got := waits(s); got[0] != 7*time.Second || got[1] != time.Minute {
			t.Errorf("waited %s, want first 7s, then 1m", got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a stopping service answers long-polls at once: no storm
		c, s := playing(t, nil, pageOf("", "a", false))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := followed(c.Events(ctx, "hub-1", "a", LongPoll()), 1); !errors.Is(
			err, context.DeadlineExceeded,
		) {
			t.Error(err)
		}
		if n := len(s.seen()); n > 20 {
			t.Errorf("got %d polls in a minute, want at most 20", n)
		}
	})
}

// A service that stays away ends the sequence with GiveUpAfter, and not without.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := playing(t, nil, events(nil, frames("b")), broken)
		began := time.Now()
		got, err := followed(c.Events(t.Context(), "hub-1", "a", GiveUpAfter(time.Minute)), 9)
		if took := time.Since(began); got != "b" || !errors.Is(err, errBroken) ||
			took > time.Minute ||
			took < 45*time.Second {
			t.Errorf("got %q, %v after %s, want b, errBroken, 45 s to 1 min", got, err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := followed(c.Events(ctx, "hub-1", "a"), 9); !errors.Is(
			err, context.DeadlineExceeded,
		) {
			t.Errorf("ended with %v, want the context's deadline", err)
		}
	})
}
