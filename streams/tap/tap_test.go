package tap_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

// TestHistoryThenLive checks that a tap that starts while events are stored delivers every event of
// every hub once and in order, also of hubs that are new, and to an output that blocks for long.
func TestHistoryThenLive(t *testing.T) {
	t.Parallel()
	const hubs, late, batches = 20, 10, 30
	r := newTestHubs(t, time.Hour)
	for n := range hubs {
		r.store(hubID(n), 1+n*40)
	}
	var writers sync.WaitGroup
	begin := make(chan struct{})
	for n := range hubs + late {
		writers.Go(func() {
			<-begin
			for i := range batches {
				r.store(hubID(n), 1+(n+i)%7)
			}
		})
	}
	close(begin)
	out, release := newSink(), make(chan struct{})
	out.fail = func() error { <-release; return nil }
	u := r.start(tap.Config{Follow: true, Output: out})
	writers.Wait()
	close(release)
	want := 0
	for _, n := range r.n {
		want += n
	}
	got := numbers(t, out.await(t, want))
	for n := range hubs + late {
		consecutive(t, hubID(n), got[hubID(n)], r.n[hubID(n)])
	}
	if err := u.end(); err != nil {
		t.Error(err)
	}
	if got := len(out.all()); got != want {
		t.Errorf("records: got %d, want %d", got, want)
	}
}

// TestFilters checks the selection by hub, type and time, and of commands.
func TestFilters(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	r.store(hubID(1), 20)
	r.store(hubID(2), 20)
	since := time.Now()
	streamstest.Eventually(t, "later events are stored in a later millisecond", func() bool {
		return time.Since(since) > 2*time.Millisecond
	})
	r.store(hubID(2), 10)
	command := []byte(`{"key":"lock","value":true}`)
	if _, err := r.logs.AppendCommand(t.Context(), hubID(2), command); err != nil {
		t.Fatal(err)
	}
	// States are not delivered.
	for _, hub := range []domain.HubID{hubID(2), hubID(3), hubID(4)} {
		if _, err := r.logs.AppendState(
			t.Context(), hub, domain.NewEpochID(0xa), org, []byte("state"),
		); err != nil {
			t.Fatal(err)
		}
	}
	r.store(hubID(3), 10)

	for name, c := range map[string]struct {
		cfg  tap.Config
		want string
	}{
		"hub": {tap.Config{Hubs: []domain.HubID{hubID(1)}}, "hub-aaaa-aaaa-0001: 1-20"},
		"type": {
			tap.Config{Types: []string{"device.updated"}, Hubs: []domain.HubID{hubID(2)}},
			"hub-aaaa-aaaa-0002: 10,20,30",
		},
		"types by prefix": {
			tap.Config{Types: []string{"device.*", "rule.fired"}, Hubs: []domain.HubID{hubID(1)}},
			"hub-aaaa-aaaa-0001: 10,20",
		},
		"time": {
			tap.Config{Since: since}, "hub-aaaa-aaaa-0002: 21-30; hub-aaaa-aaaa-0003: 1-10",
		},
		"unknown hub": {tap.Config{Hubs: []domain.HubID{hubID(9)}}, ""},
	} {
		if got := summary(numbers(t, r.run(c.cfg))); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}

	if got := r.run(tap.Config{
		Hubs: []domain.HubID{hubID(2)}, Commands: true, Types: []string{"none"},
	}); len(got) != 1 || got[0].Type != tap.TypeCommand ||
		!strings.Contains(string(got[0].Envelope), `"data":{"key":"lock","value":true}`) {
		t.Errorf("commands: got %+v, want one of key lock", got)
	}
}

// TestNew checks that a tap with New delivers only events that are stored after its start, and all
// events of a new hub.
func TestNew(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	r.store(hubID(1), 20)
	out := newSink()
	path := t.TempDir() + "/checkpoint"
	r.start(tap.Config{
		New: true, Follow: true, Output: out, Checkpoint: path, CheckpointEvery: 5 * time.Millisecond,
	})
	// The checkpoint has the position at which the tap started.
	streamstest.Eventually(t, "the checkpoint has 20 events of the hub", func() bool {
		at, err := readCheckpoint(path)
		return err == nil && at[hubID(1)].Seq == 20
	})
	r.store(hubID(1), 5)
	r.store(hubID(2), 5)
	const want = "hub-aaaa-aaaa-0001: 21-25; hub-aaaa-aaaa-0002: 1-5"
	if got := summary(numbers(t, out.await(t, 10))); got != want {
		t.Errorf("events: got %s, want %s", got, want)
	}
}

// TestLogReplaced checks that a log that was deleted with its journal, and created again while no
// tap ran, is reported as replaced, and read from its beginning.
func TestLogReplaced(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]int{"shorter": 3, "longer": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestHubs(t, time.Hour)
			path := t.TempDir() + "/checkpoint"
			r.store(hubID(1), 10)
			r.run(tap.Config{Checkpoint: path})
			// A log that only lost its stream is written again from the journal.
			r.closeLogs()
			r.deleteStream(r.conns.Cloud, streams.JournalStream(0))
			r.deleteStream(r.conns.Cloud, streams.JournalIndexStream)
			r.deleteStream(r.conns.Shard(hubID(1)), streams.HubStream(hubID(1)))
			r.openLogs(time.Hour)
			r.last[hubID(1)], r.n[hubID(1)] = 0, 0
			r.store(hubID(1), again)
			got := r.run(tap.Config{Checkpoint: path, ReplacedAfter: time.Second})
			if len(got) != again+1 || got[0].Type != tap.TypeGap ||
				!strings.Contains(
					string(got[0].Envelope),
					`"data":{"reason":"log_replaced","from":null,"to":null}`,
				) {
				t.Fatalf(
					"got %d records, the first %s, want log_replaced", len(got), got[0].Envelope,
				)
			}
			consecutive(t, hubID(1), numbers(t, got[1:])[hubID(1)], again)
		})
	}
}

// TestLogLosesItsEnd checks that a log whose stream a server has lost, and which the journal
// completes some time later, does not count as replaced: the tap waits, and continues.
func TestLogLosesItsEnd(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	path := t.TempDir() + "/checkpoint"
	id := hubID(1)
	r.store(id, 10)
	r.run(tap.Config{Checkpoint: path})
	js := streamstest.JetStream(t, r.conns.Shard(id))
	stream, err := js.Stream(t.Context(), streams.HubStream(id))
	streamstest.Must(t, err)
	empty := stream.CachedInfo().Config
	r.deleteStream(r.conns.Shard(id), streams.HubStream(id))
	streamstest.EventuallyNil(t, "the stream is created again", func() error {
		_, err := js.CreateStream(t.Context(), empty)
		return err
	})
	out, waits := newSink(), make(warnings, 1)
	running := r.start(tap.Config{
		Output: out, Checkpoint: path, Follow: true, ReplacedAfter: time.Minute,
		Logger: slog.New(slog.NewTextHandler(waits, nil)),
	})
	for line := ""; !strings.Contains(line, "the log ends before"); line = <-waits {
	}
	// The next event makes the service look at the stream, which it completes.
	r.store(id, 1)
	got := out.await(t, 1)
	running.stop()
	if len(got) != 1 || number(t, got[0]) != 11 {
		t.Errorf("got %d records, the first %s, want event 11", len(got), got[0].Envelope)
	}
}

// warnings passes on the lines of a log, as far as they are read.
type warnings chan string

func (w warnings) Write(line []byte) (int, error) {
	select {
	case w <- string(line):
	default:
	}
	return len(line), nil
}

// deleteStream deletes a stream; one that does not exist is no error.
func (r *testHubs) deleteStream(nc *nats.Conn, name string) {
	r.t.Helper()
	err := streamstest.JetStream(r.t, nc).DeleteStream(r.t.Context(), name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		r.t.Fatal(err)
	}
}

// TestNewEpoch checks that a new epoch is reported between the last event of the old one and the
// first event of the new one.
func TestNewEpoch(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	out := newSink()
	r.start(tap.Config{Follow: true, Output: out})
	r.store(hubID(1), 3)
	out.await(t, 3)
	r.mu.Lock()
	r.epochs[hubID(1)] = domain.NewEpochID(0xb)
	r.mu.Unlock()
	r.store(hubID(1), 2)
	got := out.await(t, 6)
	if got[3].Type != tap.TypeLogBegun ||
		!strings.Contains(
			string(got[3].Envelope), `"data":{"former":"0000000a","log":"0000000b"}`,
		) ||
		number(t, got[4]) != 4 {
		t.Errorf("got %s, then %s, want log begun, then event 4", got[3].Envelope, got[4].Envelope)
	}
}

// summary returns the numbers of each hub in the form "hub: 1-3,7; hub: 2", sorted by hub.
func summary(all map[domain.HubID][]int) string {
	var parts []string
	for n := range 10 {
		numbers := all[hubID(n)]
		if len(numbers) == 0 {
			continue
		}
		var runs []string
		for i := 0; i < len(numbers); {
			j := i
			for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
				j++
			}
			if j > i {
				runs = append(runs, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
			} else {
				runs = append(runs, fmt.Sprint(numbers[i]))
			}
			i = j + 1
		}
		parts = append(parts, string(hubID(n))+": "+strings.Join(runs, ","))
	}
	return strings.Join(parts, "; ")
}
