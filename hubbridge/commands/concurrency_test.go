package commands_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/hubbridge/commands"
	"hubcloud/streams/once"
	"hubcloud/streams/streamstest"
)

// TestConcurrentDuplicates: of 30 concurrent duplicates, over two replicas, one is sent, and all
// get its answer.
func TestConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			release := make(chan struct{})
			cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
			var all []*replica
			for n := range replicas {
				all = append(all, cloud.replica(fmt.Sprint("r", n)))
			}
			var group sync.WaitGroup
			answers := make([]outcome, 30)
			for i := range answers {
				group.Go(func() { answers[i] = all[i%replicas].sent(cloud.command("k")) })
			}
			streamstest.Eventually(t, "the hub got the request, and all other callers wait", func() bool {
				shared := 0.0
				for _, p := range all {
					shared += p.count("shared_total")
				}
				return len(cloud.hub.ids()) == 1 && int(shared) == 30-replicas
			})
			close(release)
			group.Wait()
			for i, answer := range answers {
				if answer != answers[0] || answer.err != "" {
					t.Errorf("answer %d: got %+v, want %+v", i, answer, answers[0])
				}
			}
			cloud.hub.wantRan(1, 1)
			cloud.wantRecords("requested accepted")
		})
	}
}

// TestKilled: 30 callers retry while the process that runs their command is killed again and again.
// The hub runs the command once, and all callers get the same answer.
func TestKilled(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	release := make(chan struct{})
	cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
	var current atomic.Pointer[replica]
	current.Store(cloud.replica("r1"))
	answers := make([]outcome, 30)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			deadline := time.Now().Add(5 * time.Minute)
			for time.Now().Before(deadline) {
				if answers[i] = current.Load().sent(cloud.command("k")); answers[i].err == "" {
					return
				}
				<-time.After(time.Millisecond)
			}
		})
	}
	const kills = 5
	asked := func() int {
		cloud.hub.mu.Lock()
		defer cloud.hub.mu.Unlock()
		return len(cloud.hub.asked)
	}
	for n := range kills {
		streamstest.Eventually(t, "the hub got the request", func() bool { return asked() == n+1 })
		dead := current.Load()
		dead.kill()
		current.Store(cloud.replica("r1"))
	}
	streamstest.Eventually(
		t, "the hub got the last request", func() bool { return asked() == kills+1 },
	)
	close(release)
	group.Wait()
	for i, answer := range answers {
		if answer != answers[0] || answer.err != "" {
			t.Errorf("answer %d: got %+v, want %+v", i, answer, answers[0])
		}
	}
	cloud.hub.wantRan(kills+1, 1)
	// A replica that was killed may have left the record of a command that it had not withdrawn
	// yet.
	cloud.wantRecordsOf(
		cloud.hub.ids(), "requested requested requested requested requested requested accepted",
	)
}

// TestHolderHangs: another replica waits for a holder that hangs until the holder's deadline, and
// takes over then.
func TestHolderHangs(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	hang := make(chan struct{})
	p := cloud.replicaWith("r1", func(logs commands.Logs) commands.Logs {
		return faultyLogs{logs, func([]byte) error { <-hang; return nil }}
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
	later := cloud.replica("r3", func(_ *commands.Config, cfg *once.Config) {
		cfg.Now = func() time.Time { return time.Now().Add(16 * time.Second) }
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
