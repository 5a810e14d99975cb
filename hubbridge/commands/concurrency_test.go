package commands_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// TestAtOnce: of 30 that come at once, over two replicas, one is sent, and all get its answer.
func TestAtOnce(t *testing.T) {
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
			streamstest.Eventually(t, "the hub is asked, and all the others wait", func() bool {
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
					t.Errorf("answer %d: %+v, the first %+v", i, answer, answers[0])
				}
			}
			cloud.hub.wantRan(1, 1)
			cloud.wantRecords("requested accepted")
		})
	}
}

// TestOneOfTwoCommands: of two commands that come under one key at once, at two replicas, one is
// sent, and the other is a conflict.
func TestOneOfTwoCommands(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	all := []*replica{cloud.replica("r1"), cloud.replica("r2")}
	for n := range 20 {
		key := fmt.Sprint("k", n)
		errs := make([]error, 8)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() {
				c := cloud.command(key)
				c.Value = json.RawMessage([]string{"true", "false"}[i/2%2])
				_, errs[i] = all[i%2].send(c)
			})
		}
		group.Wait()
		accepted := 0
		for i, err := range errs {
			switch {
			case err == nil:
				accepted++
			case !errors.Is(err, &domain.Error{Code: domain.CodeIdempotencyConflict}):
				t.Errorf("%d: %v", i, err)
			}
		}
		if accepted != 4 {
			t.Errorf("%s: %d accepted: %v", key, accepted, errs)
		}
		cloud.hub.wantRan(n+1, n+1)
	}
}

// TestKilled: 30 callers retry while the process that has their command is killed, again and again.
// The hub runs it once, and all hear the same.
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
			deadline := time.Now().Add(time.Minute)
			for time.Now().Before(deadline) {
				if answers[i] = current.Load().sent(cloud.command("k")); answers[i].err == "" {
					return
				}
				<-time.After(time.Millisecond)
			}
		})
	}
	const kills = 5
	asked := func() int { cloud.hub.mu.Lock(); defer cloud.hub.mu.Unlock(); return len(cloud.hub.asked) }
	for n := range kills {
		streamstest.Eventually(t, "the hub is asked", func() bool { return asked() == n+1 })
		dead := current.Load()
		dead.kill()
		current.Store(cloud.replica("r1"))
	}
	streamstest.Eventually(t, "the hub is asked at last", func() bool { return asked() == kills+1 })
	close(release)
	group.Wait()
	for i, answer := range answers {
		if answer != answers[0] || answer.err != "" {
			t.Errorf("answer %d: %+v, the first %+v", i, answer, answers[0])
		}
	}
	cloud.hub.wantRan(kills+1, 1)
	cloud.wantRecords("requested requested requested requested requested requested accepted")
}

// TestHolderDies: what another replica began and left when it was killed is taken over at once,
// under the same id.
func TestHolderDies(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	cloud.hub.set(
		func(h *hub) { h.act = func(c hubCommand) (string, bool) { p.kill(); return accepts(c, 1), true } },
	)
	p.sent(cloud.command("k"))
	began := time.Now()
	channel, err := cloud.replica("r2").send(cloud.command("k"))
	cloud.wantAccepted(channel, err)
	if took := time.Since(began); took > 10*time.Second { // a reservation is held for 15
		t.Errorf("it took %v", took)
	}
	cloud.hub.wantRan(2, 1)
}

// TestHolderStandsStill: what another replica began and does not get done with is waited for until
// its time is over.
func TestHolderStandsStill(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	stands := make(chan struct{})
	p := cloud.replicaWith("r1", func(logs commands.Logs) commands.Logs {
		return faultyLogs{logs, func([]byte) error { <-stands; return nil }}
	})
	first := make(chan outcome, 1)
	go func() { first <- p.sent(cloud.command("k")) }()
	streamstest.Eventually(t, "it is reserved", func() bool { return cloud.reserved() == 1 })

	impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := cloud.replica("r2").Send(impatient, origin(), cloud.command("k")); !errors.Is(
		err, context.DeadlineExceeded,
	) {
		t.Errorf("within its time: %v", err)
	}
	cloud.hub.wantRan(0, 0)
	later := cloud.replica("r3", func(_ *commands.Config, cfg *idempotency.Config) {
		cfg.Now = func() time.Time { return time.Now().Add(16 * time.Second) }
	})
	second := later.sent(cloud.command("k"))
	cloud.hub.wantRan(1, 1)
	close(stands)
	if got := <-first; got != second || got.err != "" {
		t.Errorf("%+v, and %+v", got, second)
	}
	cloud.hub.wantRan(2, 1)
}

// TestCallerGone: a caller that does not wait loses nothing: the command goes on, and its outcome
// is remembered.
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
	streamstest.Eventually(t, "the hub is asked", func() bool { return len(cloud.hub.ids()) == 1 })
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

// TestClose: what is under way is waited for, and what is not waited for is left so that another
// replica goes on at once.
func TestClose(t *testing.T) {
	t.Parallel()
	for name, patient := range map[string]bool{"patient": true, "impatient": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			p := cloud.replica("r1")
			release := make(chan struct{})
			cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
			answer := make(chan outcome, 1)
			go func() { answer <- p.sent(cloud.command("k")) }()
			streamstest.Eventually(
				t, "the hub is asked", func() bool { return len(cloud.hub.ids()) == 1 },
			)
			ctx, cancel := context.WithCancel(t.Context())
			closed := make(chan struct{})
			go func() {
				p.Close(ctx)
				close(closed)
			}()
			// what is still taken is refused at once
			cloud.hub.set(func(h *hub) { h.offline = true })
			streamstest.Eventually(t, "no more are taken", func() bool {
				_, err := p.send(cloud.command("another"))
				return errors.Is(err, commands.ErrClosed)
			})
			if patient {
				close(release)
			} else {
				cancel()
			}
			<-closed
			cancel()
			if got := <-answer; (got.err == "") != patient {
				t.Errorf("%+v", got)
			}
			if !patient {
				close(release)
			}
			cloud.hub.set(func(h *hub) { h.offline = false })
			channel, err := cloud.replica("r2").send(cloud.command("k"))
			cloud.wantAccepted(channel, err)
			if patient {
				cloud.hub.wantRan(1, 1)
			} else {
				cloud.hub.wantRan(2, 1)
			}
		})
	}
}

// faultyLogs fails records as a test tells it.
type faultyLogs struct {
	commands.Logs
	fail func(payload []byte) error
}

func (l faultyLogs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte, header nats.Header,
) (uint64, error) {
	if err := l.fail(payload); err != nil {
		return 0, err
	}
	return l.Logs.AppendCommand(ctx, hub, payload, header)
}

// TestStorageFails: a command that cannot be recorded is not sent, and its key is free for it
// afterwards; an outcome that cannot be recorded is answered all the same.
func TestStorageFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails string
		asked int
	}{
		"before": {"command.requested", 0},
		"after":  {"command.answered", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			var full atomic.Bool
			full.Store(true)
			p := cloud.replicaWith("r1", func(logs commands.Logs) commands.Logs {
				return faultyLogs{logs, func(payload []byte) error {
					var one record
					if err := json.Unmarshal(payload, &one); err != nil {
						return err
					}
					if one.Type == tc.fails && full.Load() {
						return errors.New("the disk is full")
					}
					return nil
				}}
			})
			channel, err := p.send(cloud.command("k"))
			if tc.asked == 0 {
				wantCode(t, err, domain.CodeInternal)
			} else {
				cloud.wantAccepted(channel, err)
			}
			cloud.hub.wantRan(tc.asked, tc.asked)
			full.Store(false)
			channel, err = cloud.replica("r2").send(cloud.command("k"))
			cloud.wantAccepted(channel, err)
			cloud.hub.wantRan(1, 1)
		})
	}
}

// TestNoLeader: a command failed at once with internal_error while its hub's log had no leader ("no
// responders"). It waits for one, and is recorded once although the answer to an append was lost;
// when there is none for 15 s it says that nothing was sent.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails int32 // appends that fail
		fault error
		code  domain.Code
	}{
		"a new leader":      {20, streams.ErrNoStream, ""},
		"a lost answer":     {2, streams.ErrUnsure, ""},
		"no leader for 15s": {1 << 30, streams.ErrNoStream, domain.CodeServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newTestCloud(t)
			var tries atomic.Int32
			p := cloud.replicaWith("r1", func(logs commands.Logs) commands.Logs {
				return faultyLogs{logs, func([]byte) error {
					if tries.Add(1) <= tc.fails {
						return fmt.Errorf("store: %w", tc.fault)
					}
					return nil
				}}
			})
			began := time.Now()
			channel, err := p.send(cloud.command("k"))
			if tc.code != "" {
				wantCode(t, err, tc.code)
				if took := time.Since(began); took < 14*time.Second ||
					!strings.Contains(err.Error(), "not sent to the hub") {
					t.Errorf("%v after %v", err, took)
				}
				cloud.hub.wantRan(0, 0)
				return
			}
			cloud.wantAccepted(channel, err)
			cloud.hub.wantRan(1, 1)
			cloud.wantRecords("requested accepted")
		})
	}
}

// TestLostAppend: an append that was stored and whose answer was lost is not repeated.
func TestLostAppend(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	var lost atomic.Int32
	p := cloud.replicaWith(
		"r1", func(logs commands.Logs) commands.Logs { return lossyLogs{logs, &lost} },
	)
	channel, err := p.send(cloud.command("k"))
	cloud.wantAccepted(channel, err)
	cloud.wantRecords("requested accepted")
	if lost.Load() != 2 {
		t.Errorf("%d answers were lost, want 2", lost.Load())
	}
}

// lossyLogs stores each record, and loses the answer.
type lossyLogs struct {
	commands.Logs
	lost *atomic.Int32
}

func (l lossyLogs) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte, header nats.Header,
) (uint64, error) {
	if _, err := l.Logs.AppendCommand(ctx, hub, payload, header); err != nil {
		return 0, err
	}
	l.lost.Add(1)
	return 0, fmt.Errorf("store: %w", streams.ErrUnsure)
}

// TestBrokerRestarts: the broker goes away while a command is under way, and comes back. The hub
// runs it once, whatever the caller heard first.
func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1", hubTimeout(time.Second))
	cloud.wantAccepted(p.send(cloud.command("warm")))
	cloud.hub.set(func(h *hub) {
		h.before = func(hubCommand) { cloud.broker.Stop(); cloud.broker.Start(t); h.set(func(h *hub) { h.before = nil }) }
	})
	var last outcome
	streamstest.Eventually(t, "it is accepted", func() bool {
		last = p.sent(cloud.command("k"))
		return last.err == ""
	})
	if again := p.sent(cloud.command("k")); again != last {
		t.Errorf("%+v, first %+v", again, last)
	}
	cloud.hub.mu.Lock()
	defer cloud.hub.mu.Unlock()
	if len(cloud.hub.ran) != 2 {
		t.Errorf("ran %v", cloud.hub.ran)
	}
}

// TestManyAtOnce: commands of different keys do not wait for one another, however slow the hub is.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	release := make(chan struct{})
	cloud.hub.set(func(h *hub) { h.before = func(hubCommand) { <-release } })
	const many = 200
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			key := fmt.Sprint("k", i)
			if i%2 == 0 {
				key = ""
			}
			channel, err := p.send(cloud.command(key))
			cloud.wantAccepted(channel, err)
		})
	}
	streamstest.Eventually(
		t, "the hub has all of them", func() bool { return len(cloud.hub.ids()) == many },
	)
	close(release)
	group.Wait()
	cloud.hub.wantRan(many, many)
}

// TestOnceWhateverHappens: over any history of commands under a few keys at two replicas, of hubs
// that accept, refuse, fail, act without answering and go away, and of replicas that are killed:
// under one key the hub runs one command once, the first answer that settles it stays the answer,
// and any other command is a conflict.
func TestOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	replicas := map[string]*replica{}
	names := []string{"r1", "r2"}
	start := func(name string) { replicas[name] = cloud.replica(name, hubTimeout(30*time.Millisecond)) }
	for _, name := range names {
		start(name)
	}
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		type known struct {
			value   string // what the key stands for
			settled outcome
		}
		keys := map[string]*known{}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			key := fmt.Sprintf(
				"%d-%s", histories, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"),
			)
			value := rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "value")
			name := rapid.SampledFrom(names).Draw(rt, "replica")
			mood := rapid.SampledFrom([]string{
				"accepts", "refuses", "unavailable", "mute", "fails", "offline", "kills",
			}).
				Draw(rt, "mood")
			p := replicas[name]
			cloud.hub.set(func(h *hub) {
				h.offline = mood == "offline"
				h.before = nil
				h.act = func(c hubCommand) (string, bool) {
					switch mood {
					case "refuses":
						return rejects("command_refused"), true
					case "unavailable":
						return rejects("hub_unavailable"), false
					case "fails":
						return `"result":[]`, false
					case "mute":
						h.ran = append(h.ran, c.CommandID)
						h.answers[c.CommandID] = accepts(c, len(h.ran))
						return "", false
					case "kills":
						go p.kill()
					}
					return accepts(c, len(h.ran)+1), true
				}
			})
			c := cloud.command(key)
			c.Value = json.RawMessage(value)
			got := p.sent(c)
			if mood == "kills" {
				p.kill()
				start(name)
			}
			k := keys[key]
			conflict := k != nil && k.value != value
			switch {
			case mood == "kills" && got.err != "":
			case conflict != (got.err == domain.Errorf(domain.CodeIdempotencyConflict, "Idempotency-Key: was used for another request; use a new key").Error()):
				rt.Fatalf(
					"%s %s at %s (%s): %+v; the key stands for %+v", key, value, name, mood, got, k,
				)
			}
			if conflict || mood == "offline" && k == nil {
				continue
			}
			if k == nil {
				// a replica that is killed when the hub is asked has reserved it before
				k = &known{value: value}
				keys[key] = k
			}
			if k.settled != (outcome{}) && mood != "kills" && got != k.settled {
				rt.Fatalf(
					"%s %s at %s (%s): %+v; it was %+v", key, value, name, mood, got, k.settled,
				)
			}
			// What a process answered that could not write any more is an answer that a killed
			// process does not give.
			if mood != "kills" && (got.err == "" || got.err == "command_refused: because") {
				k.settled = got
			}
		}
	})
	cloud.hub.mu.Lock()
	defer cloud.hub.mu.Unlock()
	ran := slices.Clone(cloud.hub.ran)
	slices.Sort(ran)
	if len(slices.Compact(ran)) != len(cloud.hub.ran) {
		t.Error("an id was run twice")
	}
}
