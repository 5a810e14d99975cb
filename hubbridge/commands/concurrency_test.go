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
	"hubcloud/streams/jsapi"
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
			streamstest.Eventually(
				t,
				"the hub got the request, and all other callers wait",
				func() bool {
					shared := 0.0
					for _, p := range all {
						shared += p.count("shared_total")
					}
					return len(cloud.hub.ids()) == 1 && int(shared) == 30-replicas
				},
			)
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

// TestConcurrentConflict: of two different commands that are sent under one key at the same moment,
// at two replicas, one is sent, and the other is a conflict.
func TestConcurrentConflict(t *testing.T) {
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
	cloud.wantRecords("requested requested requested requested requested requested accepted")
}

// TestHolderDies: the command of a killed replica is taken over at once, under the same ID.
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
	close(hang)
	if got := <-first; got != second || got.err != "" {
		t.Errorf("%+v, and %+v", got, second)
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
				t.Errorf("%+v", got)
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

// faultyLogs fails appends for which fail returns an error.
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

// TestStorageFails: a command that cannot be recorded is not sent, and may be sent again under its
// key. An outcome that cannot be recorded does not change the answer.
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

// TestNoLeader: a command failed at once with internal_error ("no responders") while its hub's
// event log had no leader. It must wait for one, be recorded once although acknowledgements of
// appends are lost, and after 15 s without a leader fail with an error that nothing was sent.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails int32 // appends that fail
		fault error
		code  domain.Code
	}{
		"a new leader":      {20, jsapi.ErrNoStream, ""},
		"a lost answer":     {2, jsapi.ErrOutcomeUnknown, ""},
		"no leader for 15s": {1 << 30, jsapi.ErrNoStream, domain.CodeServiceUnavailable},
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

// TestLostAppend: an append that was stored is not repeated when its acknowledgement is lost.
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
		t.Errorf("%d acknowledgements were lost, want 2", lost.Load())
	}
}

// lossyLogs stores each record and loses the acknowledgement.
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
	return 0, fmt.Errorf("store: %w", jsapi.ErrOutcomeUnknown)
}

// TestBrokerRestarts: the broker restarts while a command is in flight. The hub runs the command
// once, whatever the first answer.
func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1", hubTimeout(time.Second))
	cloud.wantAccepted(p.send(cloud.command("before")))
	cloud.hub.set(func(h *hub) {
		h.before = func(hubCommand) {
			cloud.broker.Stop()
			cloud.broker.Start(t)
			h.set(func(h *hub) { h.before = nil })
		}
	})
	var last outcome
	streamstest.Eventually(t, "the command is accepted", func() bool {
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

// TestConcurrentCommands: commands with different keys do not wait for each other, however slow the
// hub is.
func TestConcurrentCommands(t *testing.T) {
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
		t, "the hub got all requests", func() bool { return len(cloud.hub.ids()) == many },
	)
	close(release)
	group.Wait()
	cloud.hub.wantRan(many, many)
}

// TestOnceInAnyHistory tries random histories of commands under two keys at two replicas: the hub
// accepts, rejects, fails, acts without answering or is offline, and replicas are killed. Under one
// key the hub must run one command once, the first final answer must stay the answer, and any other
// command must be a conflict.
func TestOnceInAnyHistory(t *testing.T) {
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
			value string // what the key stands for
			final outcome
		}
		keys := map[string]*known{}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			key := fmt.Sprintf(
				"%d-%s", histories, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key"),
			)
			value := rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "value")
			name := rapid.SampledFrom(names).Draw(rt, "replica")
			behavior := rapid.SampledFrom([]string{
				"accepts", "refuses", "unavailable", "silent", "fails", "offline", "kills",
			}).
				Draw(rt, "behavior")
			p := replicas[name]
			cloud.hub.set(func(h *hub) {
				h.offline = behavior == "offline"
				h.before = nil
				h.act = func(c hubCommand) (string, bool) {
					switch behavior {
					case "refuses":
						return rejects("command_refused"), true
					case "unavailable":
						return rejects("hub_unavailable"), false
					case "fails":
						return `"result":[]`, false
					case "silent":
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
			if behavior == "kills" {
				p.kill()
				start(name)
			}
			k := keys[key]
			conflict := k != nil && k.value != value
			switch {
			case behavior == "kills" && got.err != "":
			case conflict != strings.HasPrefix(got.err, string(domain.CodeIdempotencyConflict)+":"):
				rt.Fatalf(
					"%s %s at %s (%s): %+v; the key stands for %+v", key, value, name, behavior,
					got, k,
				)
			}
			if conflict || behavior == "offline" && k == nil {
				continue
			}
			if k == nil {
				// A replica that is killed while the hub runs the command has reserved the key.
				k = &known{value: value}
				keys[key] = k
			}
			if k.final != (outcome{}) && behavior != "kills" && got != k.final {
				rt.Fatalf(
					"%s %s at %s (%s): %+v; it was %+v", key, value, name, behavior, got, k.final,
				)
			}
			// A killed process could answer nothing: an answer that it could not store does not
			// count.
			if behavior != "kills" && (got.err == "" || got.err == "command_refused: because") {
				k.final = got
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
