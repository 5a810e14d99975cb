package commands_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"hubcloud/hubbridge/commands"
	"hubcloud/streams/streamstest"
)

// TestHolderHangs: another replica waits for a holder that hangs until the holder's deadline, and
// takes over then.
func TestHolderHangs(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	hang := make(chan struct{})
	p := cloud.replica("r1", func(s *setup) {
		s.append = func(_ []byte, store func() (uint64, error)) (uint64, error) {
			<-hang
			return store()
		}
	})
	first := make(chan outcome, 1)
	go func() { first <- p.sent(cloud.command("k")) }()
	streamstest.Eventually(t, "the key is reserved", func() bool { return cloud.reserved() == 1 })

	waits := cloud.replica("r2")
	impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := waits.Send(impatient, origin(), cloud.command("k"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the holder's deadline: got %v, want %v", err, context.DeadlineExceeded)
	}
	cloud.hub.wantRan(0, 0)
	later := cloud.replica("r3", func(s *setup) {
		s.keys.Now = func() time.Time { return time.Now().Add(16 * time.Second) }
	})
	second := later.sent(cloud.command("k"))
	cloud.hub.wantRan(1, 1)
	close(hang)
	if got := <-first; got != second || got.err != "" {
		t.Errorf("answer of the holder: got %+v, want %+v", got, second)
	}
	cloud.hub.wantRan(2, 1)
}

// TestCallerGone: the command of a caller that has gone is finished, and its answer is remembered.
func TestCallerGone(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	release := make(chan struct{})
	cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := p.Send(ctx, origin(), cloud.command("k"))
		gone <- err
	}()
	streamstest.Eventually(
		t, "the hub got the request", func() bool { return len(cloud.hub.ids()) == 1 },
	)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	cloud.wantRecords("requested accepted")
	cloud.hub.set(func(h *hub) { h.offline = true })
	channel, err := p.send(cloud.command("k"))
	cloud.wantAccepted(channel, err)
	cloud.hub.wantRan(1, 1)
}

// TestClose: Close waits for calls in flight until its context ends. Another replica continues a
// canceled call at once.
func TestClose(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"waits": true, "canceled": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			p := cloud.replica("r1")
			release := make(chan struct{})
			cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
			answer := make(chan outcome, 1)
			go func() { answer <- p.sent(cloud.command("k")) }()
			streamstest.Eventually(
				t, "the hub got the request", func() bool { return len(cloud.hub.ids()) == 1 },
			)
			ctx, cancel := context.WithCancel(t.Context())
			closed := make(chan struct{})
			go func() {
				p.Close(ctx)
				close(closed)
			}()
			// another command is rejected at once
			cloud.hub.set(func(h *hub) { h.offline = true })
			streamstest.Eventually(t, "new commands are rejected", func() bool {
				_, err := p.send(cloud.command("another"))
				return errors.Is(err, commands.ErrClosed)
			})
			if waits {
				close(release)
			} else {
				cancel()
			}
			<-closed
			cancel()
			if got := <-answer; (got.err == "") != waits {
				t.Errorf("command in flight: got %+v, want an answer: %t", got, waits)
			}
			if !waits {
				close(release)
			}
			cloud.hub.set(func(h *hub) { h.offline = false })
			channel, err := cloud.replica("r2").send(cloud.command("k"))
			cloud.wantAccepted(channel, err)
			if waits {
				cloud.hub.wantRan(1, 1)
			} else {
				cloud.hub.wantRan(2, 1)
			}
		})
	}
}
