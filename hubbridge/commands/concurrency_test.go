package commands_test

import (
	"context"
	"errors"
	"testing"

	"hubcloud/hubbridge/commands"
	"hubcloud/streams/streamstest"
)

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
