package ingest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/feed"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// emptyView is a view of the directory that has no hubs.
type emptyView struct{}

func (emptyView) Hub(domain.HubID) (domain.HubAccess, bool) { return domain.HubAccess{}, false }

// lagging is a view of the directory that can be frozen for a hub.
type lagging struct {
	testIngest *testIngest
	mu         sync.Mutex
	frozen     domain.HubID
	access     domain.HubAccess
}

func (l *lagging) freeze(hub domain.HubID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = hub
	l.access, _ = l.testIngest.Hub(hub)
}

func (l *lagging) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if hub == l.frozen {
		return l.access, true
	}
	return l.testIngest.Hub(hub)
}

// TestResetSurvivesACrash tries a process that was killed right after it had recorded a reset in
// the directory.
func TestResetSurvivesACrash(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.helloAcked("a", 1, 2, 0)
	h.eventsAcked("a", 1, 2)
	s.stop()
	last, err := r.HubLogs.LastSequence(t.Context(), h.id)
	streamstest.Must(t, err)
	if err := r.Directory.BeginEpoch(t.Context(), installationtest.Operator, h.id, domain.BeginEpoch{
		OwnLog: "b", Through: 4, After: last,
	}); err != nil {
		t.Fatal(err)
	}
	r.shard(h.id)
	h.events("a", 3, 3) // of the former log
	h.helloAcked("b", 5, 6, 4)
	h.eventsAcked("b", 5, 6)
	h.wantEventLog("log_reset:factory_reset 5 6")
	if got := r.count("resets_total"); got != 0 {
		t.Errorf("resets counted: got %v, want 0", got)
	}
}

// TestBehindTheDirectory holds that a replica whose view lacks a reset that another replica has
// recorded does not record the reset again.
func TestBehindTheDirectory(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	stale := &lagging{testIngest: r}
	r.shard(h.id, func(cfg *ingest.Config) { cfg.Ownership = stale })
	h.helloAcked("a", 1, 0, 0)
	stale.freeze(h.id)
	if err := r.Directory.BeginEpoch(t.Context(), installationtest.Operator, h.id, domain.BeginEpoch{
		OwnLog: "b", Through: 0,
	}); err != nil {
		t.Fatal(err)
	}
	h.hello("b", 1, 1)
	if got, ok := h.ackWithin(100 * time.Millisecond); ok {
		t.Errorf("ack %+v, want none while the view is behind", got)
	}
	stale.freeze("")
	h.helloAcked("b", 1, 1, 0)
	h.eventsAcked("b", 1, 1)
	h.wantEventLog("log_reset:factory_reset 1")
	if got := r.count("resets_total"); got != 0 {
		t.Errorf("resets counted: got %v, want 0", got)
	}
}

// TestLogResetIsNotRepeated holds that a hub whose log has lost its hub.log_reset to the retention
// gets no second one.
func TestLogResetIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, 2*time.Second)
	h := adopted(r)
	s := r.shard(h.id)
	h.helloAcked("a", 1, 0, 0)
	h.helloAcked("b", 1, 1, 0)
	h.wantJournal("log_reset:factory_reset")
	s.kill()
	h.emptied()
	r.shard(h.id)
	h.helloAcked("b", 1, 1, 0)
	h.eventsAcked("b", 1, 1)
	h.wantJournal("log_reset:factory_reset 1")
}

// countedLogs counts the calls of LastEvents.
type countedLogs struct {
	ingest.Logs
	looks atomic.Int32
}

func (l *countedLogs) LastEvents(
	ctx context.Context, hub domain.HubID,
) ([]feed.LastEvent, error) {
	l.looks.Add(1)
	return l.Logs.LastEvents(ctx, hub)
}

// TestAppendOfAFormerHolder holds that an event that another replica has stored since the hub's state
// was loaded is acknowledged, and what follows it is stored at once. Messages beyond the end do not
// make the log be read each time.
func TestAppendOfAFormerHolder(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	logs := &countedLogs{Logs: r.HubLogs}
	r.shard(h.id, func(cfg *ingest.Config) { cfg.Logs = logs })
	h.helloAcked("a", 1, 0, 0)
	h.eventsAcked("a", 1, 1)
	last, err := r.HubLogs.LastSequence(t.Context(), h.id)
	streamstest.Must(t, err)
	access, _ := r.Hub(h.id)
	payload := `{"type":"channel.observed","seq":2,"device_id":1,"time":"2026-01-02T03:04:05.000000Z",` +
		`"clock_trusted":true,"data":{"value":2}}`
	if _, err := r.HubLogs.Append(t.Context(), h.id, last, []journal.Record{{
		Kind: journal.KindHubEvent, Payload: []byte(payload), EpochID: access.Epoch.ID,
		OrgID: access.OrgID, OwnLog: "a", Through: 2,
	}}); err != nil {
		t.Fatal(err)
	}
	h.eventsAcked("a", 3, 3)
	h.wantEventLog("1 2 3")
	before := logs.looks.Load()
	for range 20 {
		h.events("a", 9, 9)
		h.wantAck("a", 3)
	}
	if looks := logs.looks.Load() - before; looks > 10 {
		t.Errorf("the end of the log was read %d times for 20 messages beyond it", looks)
	}
}
