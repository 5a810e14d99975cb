package statelog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

// The state of a hub that is offline for many retentions, after it reported once, is kept in its
// log and nowhere else. The numbering goes on.
func TestSilentHubsKeepTheirState(t *testing.T) {
	t.Parallel()
	const retention = time.Hour
	var clock streamstest.Clock
	f := start(t, retention)
	f.cfg.Now = clock.Now
	f.set(1, `"before the silence"`)
	stop := f.keep()
	f.connected()
	f.await("the state after the connection")
	f.mu.Lock()
	f.online = false
	f.mu.Unlock()
	last := f.last
	pass := func(when string) {
		t.Helper()
		f.outlive(retention, &clock)
		f.outlive(retention, &clock)
		if h := f.now(); !f.matches(h) {
			text, _ := json.Marshal(h)
			t.Errorf("the state %s is %s", when, text)
		}
	}
	pass("after a long silence")
	stop()
	// Another replica begins to serve the hub, without any memory.
	f.keep()
	pass("after a restart")
	f.report(1, `"back"`)
	if f.last <= last {
		t.Errorf("the next event has sequence %d, want above %d", f.last, last)
	}
	f.await("the state after a new report")
}

// outlive lets a retention pass: a snapshot is stored, and everything before it expires.
func (f *fixture) outlive(retention time.Duration, clock *streamstest.Clock) {
	f.Helper()
	group := f.journals.GroupOfHub(hubA)
	before, _ := f.journals.Tip(hubA)
	commits := f.journals.Position(group)
	clock.Advance(retention)
	streamstest.Eventually(f, "a snapshot is stored", func() bool {
		stored := false
		err := f.logs.States(f.Context(), hubA, func(e feed.Entry) {
			stored = stored || e.Seq > before.Seq && devicestate.IsSnapshot(e.Payload)
		})
		streamstest.Must(f, err)
		return stored
	})
	tip, _ := f.journals.Tip(hubA)
	viewstest.Await(f, f.conns, hubA, tip.Seq)
	streamstest.Expire(
		f, f.conns.Shard(hubA), streams.HubStream(hubA), int64(tip.Seq-before.Seq),
	)
	streamstest.Expire(
		f, f.conns.Cloud, streams.JournalStream(group), int64(f.journals.Position(group)-commits),
	)
}

// Snapshots are stored while events come, and the state folded from the last one equals the hub's.
// The state at an instant has what was reported before it, and not what came later.
func TestStateAtInstants(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.cfg.SnapshotEntries = 20
	begun := time.Now()
	f.set(1, `0`)
	f.keep()
	f.connected()
	f.await("the state after the connection")
	var instants []time.Time
	deadline := time.Now().Add(5 * time.Minute)
	// A snapshot is stored only if no event has overtaken it, so the events leave room.
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for snapshots := 0; snapshots < 4; _, snapshots = f.states() {
		<-pace.C
		f.report(1, fmt.Sprint(len(instants)+1))
		tip, _ := f.journals.Tip(hubA)
		instants = append(instants, tip.Time)
		if time.Now().After(deadline) {
			t.Fatalf("%d snapshots after %d events", snapshots, len(instants))
		}
	}
	f.await("the state after snapshots")
	history := NewHistory(f.logs, time.Hour, orgOf, nil, nil)
	for n := 0; n < len(instants); n += 1 + len(instants)/50 {
		past, err := history.StateAt(t.Context(), "key", hubA, instants[n])
		streamstest.Must(t, err)
		if len(past.Channels) != 1 || string(past.Channels[0].Channel.Value) != fmt.Sprint(n+1) ||
			!past.Certain || !past.Channels[0].Certain {
			t.Fatalf("state after report %d is %+v", n+1, past)
		}
		if past.KnownFrom == nil || past.KnownFrom.After(instants[n]) {
			t.Fatalf("known from %v, want before %v", past.KnownFrom, instants[n])
		}
	}
	early, err := history.StateAt(t.Context(), "key", hubA, begun.Add(-time.Minute))
	if err != nil || len(early.Channels) > 0 || early.Certain || early.KnownFrom == nil {
		t.Errorf("before the first event: %+v, %v; want nothing", early, err)
	}
	for name, at := range map[string]time.Time{
		"in the future": time.Now().Add(time.Minute), "too old": time.Now().Add(-2 * time.Hour),
	} {
		if _, err := history.StateAt(t.Context(), "key", hubA, at); domain.CodeOf(err) !=
			domain.CodeInvalidRequest || !strings.Contains(err.Error(), " at: ") {
			t.Errorf("%s: %v, want an invalid_request that names at", name, err)
		}
	}
	_, err = NewHistory(f.logs, 24*time.Hour, orgOf, nil, nil).StateAt(t.Context(), "key", hubA,
		begun.Add(-48*time.Hour))
	if want := "at: must be within the last 24 hours,"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("two days ago: %v, want a message with %q", err, want)
	}
	if _, err := history.StateAt(t.Context(), "key", "hub-none-none-none", begun); domain.CodeOf(err) !=
		domain.CodeNotFound {
		t.Errorf("unknown hub: %v, want not_found", err)
	}
}

// overtakenLogs call overtake once, right before a snapshot is stored.
type overtakenLogs struct {
	Logs
	once     sync.Once
	overtake func()
}

func (l *overtakenLogs) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
) (uint64, error) {
	l.once.Do(l.overtake)
	return l.Logs.Append(ctx, hub, expected, records)
}

// A snapshot has the read that was stored while it was being made. Stored after the read and without
// it, the state that is folded from the snapshot would lack the read, and `projections verify` would
// report a difference.
func TestSnapshotHasReadsThatOvertakeIt(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	logs := &overtakenLogs{Logs: f.logs}
	f.cfg.Logs = logs
	k, err := New(f.cfg)
	streamstest.Must(t, err)
	read := func() {
		if _, err := k.read(t.Context(), hubA); err != nil {
			t.Error(err)
		}
	}
	f.set(1, `"before"`)
	read()
	logs.overtake = func() {
		f.set(1, `"after"`)
		f.set(2, `"new"`)
		read()
	}
	if seq, err := k.storeSnapshot(t.Context(), hubA); err != nil || seq == 0 {
		t.Fatalf("storeSnapshot: %d, %v, want a sequence", seq, err)
	}
	streamstest.Eventually(t, "the hub's stream has two reads and a snapshot", func() bool {
		reads, snapshots := f.states()
		return reads == 2 && snapshots == 1
	})
	if h := f.now(); !f.matches(h) {
		text, _ := json.Marshal(h)
		t.Errorf("the state from the snapshot on is %s", text)
	}
}
