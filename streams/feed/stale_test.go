package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// staleInfo makes a single broker answer STREAM.INFO as the servers of a cluster do that know of no
// leader, or that were leaders and are cut off.
type staleInfo struct {
	*streamstest.Rewriter
	// group is the cluster block of the answers; nil leaves the answers unchanged.
	group atomic.Pointer[jetstream.ClusterInfo]
	// last is the stream's last sequence in the answers; 0 leaves the true one.
	last atomic.Uint64
	// missing makes the broker answer that the stream does not exist.
	missing atomic.Bool
	// answers counts the changed answers.
	answers atomic.Int32
}

func newStaleInfo(b *streamstest.Broker) *staleInfo {
	s := &staleInfo{Rewriter: streamstest.NewRewriter(b)}
	s.Change(s.rewrite)
	return s
}

// startStale returns Logs whose broker's answers can be changed, with five events of hubA's log. It
// does not write the journal.
func startStale(t *testing.T) (*fixture, *staleInfo) {
	t.Helper()
	broker := streamstest.New(t)
	startOn(t, broker.Connect(t), Config{}) // writes the journal
	info := newStaleInfo(broker)
	f := startOn(t, broker.Connect(t, nats.InProcessServer(info)), Config{})
	f.append(hubA, 0, 1, 5)
	return f, info
}

// streamNotFound is the broker's answer to STREAM.INFO for a stream that does not exist.
const streamNotFound = `{"type":"io.nats.jetstream.api.v1.stream_info_response",` +
	`"error":{"code":404,"err_code":10059,"description":"stream not found"}}`

func (s *staleInfo) rewrite(payload []byte) []byte {
	if bytes.HasPrefix(payload, []byte(`{"server_id"`)) {
		return bytes.Replace(payload, []byte(`{`), []byte(`{"cluster":"test",`), 1)
	}
	group := s.group.Load()
	if group == nil || !bytes.Contains(payload, []byte(`stream_info_response`)) {
		return append([]byte{}, payload...)
	}
	s.answers.Add(1)
	if s.missing.Load() {
		return []byte(streamNotFound)
	}
	var answer map[string]any
	if err := json.Unmarshal(payload, &answer); err != nil {
		panic(err)
	}
	answer["cluster"] = group
	if last := s.last.Load(); last > 0 {
		answer["state"].(map[string]any)["last_seq"] = last
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return text
}

// Cluster blocks of STREAM.INFO answers.
var (
	answered = []*jetstream.PeerInfo{{Name: "a", Active: time.Second}, {Name: "b", Active: time.Second}}
	// noLeader is the block of a follower that knows of no leader.
	noLeader = &jetstream.ClusterInfo{Replicas: answered}
	// follower is the block of a follower that knows its leader.
	follower = &jetstream.ClusterInfo{Leader: "a", Replicas: answered}
	// deposed is the block of a leader that has not been answered by a majority lately.
	deposed = &jetstream.ClusterInfo{
		Leader:   "c",
		Replicas: []*jetstream.PeerInfo{{Name: "a", Active: 4 * time.Second}, {Name: "b"}},
	}
	// leader is the block of a leader that a majority has answered lately.
	leader = &jetstream.ClusterInfo{
		Leader: "a",
		Replicas: []*jetstream.PeerInfo{
			{Name: "c", Active: 2 * time.Minute},
			{Name: "b", Active: time.Second},
		},
	}
)

// A follower without a leader answers for a stream from its own state, and the former leader of a
// cluster does not know of streams that were created after it was cut off. package feed must not trust
// these answers: it would end readers of an intact log and answer 410 for valid cursors.
func TestStaleAnswersExpireNoCursor(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]*jetstream.ClusterInfo{
		"follower without a leader": noLeader, "follower with a leader": follower,
		"deposed leader": deposed, "leader without the stream": leader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, info := startStale(t)
			page := f.page(hubA, "", 5)
			reader := f.follow(hubA, page.Next)
			info.last.Store(2)
			info.missing.Store(group == leader)
			info.group.Store(group)
			// The stream has a leader again after some stale answers.
			go func() {
				streamstest.Poll(time.Minute, func() bool { return info.answers.Load() >= 4 })
				info.last.Store(0)
				info.missing.Store(false)
				info.group.Store(leader)
			}()
			if again := f.page(hubA, page.Next, 5); len(again.Events) != 0 {
				t.Errorf("page after the end has %d events, want 0", len(again.Events))
			}
			f.append(hubA, 5, 6, 1)
			if got := read(t, reader, 10, 6); !slices.Equal(got, []int{6}) {
				t.Errorf("the reader got %v, want the sixth event", got)
			}
		})
	}
}

// A cursor that another replica had just returned was answered 410 when the broker's answer was
// older than the cursor. Even a leader's answer can be old: a deposed leader does not know of its
// successor for some seconds. So the leader must repeat for longer than that that the log ends
// before the cursor.
func TestALeaderMustRepeatThatALogIsShorter(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	elsewhere := startOn(t, broker.Connect(t), Config{})
	f := startOn(t, broker.Connect(t), Config{})
	f.append(hubA, 0, 1, 2)
	f.page(hubA, "", 5)
	last := elsewhere.append(hubA, 2, 3, 3)
	cursor := elsewhere.page(hubA, "", 5).Next

	info := newStaleInfo(broker)
	late := startOn(t, broker.Connect(t, nats.InProcessServer(info)), Config{})
	info.last.Store(2)
	info.group.Store(leader)
	go func() {
		streamstest.Poll(time.Minute, func() bool { return info.answers.Load() >= 6 })
		info.last.Store(0)
	}()
	if page, err := late.Page(t.Context(), hubA, cursor, 5); err != nil || len(page.Events) != 0 {
		t.Errorf("Page after the newest cursor = %d events, %v; want 0, nil", len(page.Events), err)
	}
	// What the leader keeps repeating is true.
	beyond := DecodedCursor{
		EpochID: domain.NewEpochID(0xa), Seq: last + 10, Stored: time.Now(),
	}.Cursor()
	_, err := late.Page(t.Context(), hubA, beyond, 5)
	if domain.CodeOf(err) != domain.CodeCursorExpired {
		t.Errorf("Page after a cursor beyond the end: %v, want cursor_expired", err)
	}
}

// The process that writes the journal does not know its newest commit while the broker's answer to
// the commit is on its way, or lost. It answered 410 for the cursors of that commit, which another
// replica had returned.
func TestACommitUnderWayExpiresNoCursor(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	proxy := streamstest.NewRewriter(broker)
	writer := startOn(t, broker.Connect(t, nats.InProcessServer(proxy)), Config{})
	other := startOn(t, broker.Connect(t), Config{})
	last := writer.append(hubA, 0, 1, 2)
	proxy.Change(func(payload []byte) []byte {
		if bytes.Contains(payload, []byte(`"stream":"`+streams.JournalStream(0))) ||
			bytes.Contains(payload, []byte(hubA)) {
			return nil // the answer, and the commit on the journal's feed
		}
		return append([]byte{}, payload...)
	})
	appended := make(chan error, 1)
	go func() {
		_, err := writer.Append(
			t.Context(), hubA, last, []journal.Record{event(3)},
		)
		appended <- err
	}()
	var cursor string
	streamstest.Eventually(t, "another replica has the third event", func() bool {
		page := other.page(hubA, "", 5)
		cursor = page.Next
		return len(page.Events) == 3
	})
	reading, cancel := context.WithTimeout(t.Context(), lossPatience+time.Second)
	_, err := writer.Page(reading, hubA, cursor, 5)
	cancel()
	if err == nil || domain.CodeOf(err) == domain.CodeCursorExpired {
		t.Errorf("Page of the writer after the third event: %v, want none before the commit", err)
	}
	proxy.Change(nil)
	if err := <-appended; err != nil {
		t.Errorf("Append: %v, want nil", err)
	}
	if page, err := writer.Page(t.Context(), hubA, cursor, 5); err != nil || len(page.Events) != 0 {
		t.Errorf("Page after the commit = %d events, %v; want 0, nil", len(page.Events), err)
	}
}

// A read that finds no leader until its context ends is a service_unavailable, not an internal
// error.
func TestNoLeaderIsUnavailable(t *testing.T) {
	t.Parallel()
	f, info := startStale(t)
	info.group.Store(noLeader)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := f.Page(ctx, hubA, "", 5)
	var known *domain.Error
	if !errors.As(err, &known) || known.Code != domain.CodeServiceUnavailable ||
		known.RetryAfter <= 0 {
		t.Errorf("Page without a leader: %v, want service_unavailable", err)
	}
}

// A replica whose view of the directory was old answered 410 for the cursors of a new epoch, which
// another replica had returned.
func TestAnUnknownEpochRefreshesTheDirectory(t *testing.T) {
	t.Parallel()
	var f *fixture
	refreshed := errors.New("Refresh was not called")
	f = start(t, Config{Refresh: func(context.Context) error {
		refreshed = nil
		f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: 3})
		return nil
	}})
	last := f.append(hubA, 0, 1, 3)
	f.page(hubA, "", 5)
	if _, err := f.Append(t.Context(), hubA, last, []journal.Record{
		record(hubA, domain.NewEpochID(0xb), 4),
	}); err != nil {
		t.Fatal(err)
	}
	after := DecodedCursor{EpochID: domain.NewEpochID(0xb), Seq: 3, Stored: time.Now()}.Cursor()
	page, err := f.Page(t.Context(), hubA, after, 5)
	if err != nil || refreshed != nil || fmt.Sprint(numbers(t, page.Events)) != "[4]" {
		t.Errorf(
			"Page after a cursor of the new epoch = %v, %v (%v); want [4], nil after Refresh",
			numbers(t, page.Events), err, refreshed,
		)
	}
}
