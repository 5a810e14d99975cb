package hublog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// liar makes a single broker answer STREAM.INFO as servers of a cluster do that know of no leader,
// or were deposed.
type liar struct {
	*streamstest.Rewriter
	// group is the cluster block of answers, and last the stream's end in them; 0 is the true one.
	// gone says that there is no such stream.
	group atomic.Pointer[jetstream.ClusterInfo]
	last  atomic.Uint64
	gone  atomic.Bool
	// asked counts the answers.
	asked atomic.Int32
}

func newLiar(b *streamstest.Broker) *liar {
	l := &liar{Rewriter: streamstest.NewRewriter(b)}
	l.Change(l.lie)
	return l
}

func (l *liar) lie(payload []byte) []byte {
	if bytes.HasPrefix(payload, []byte(`{"server_id"`)) {
		return bytes.Replace(payload, []byte(`{`), []byte(`{"cluster":"lies",`), 1)
	}
	group := l.group.Load()
	if group == nil || !bytes.Contains(payload, []byte(`stream_info_response`)) {
		return append([]byte{}, payload...)
	}
	l.asked.Add(1)
	if l.gone.Load() {
		return []byte(
			`{"type":"io.nats.jetstream.api.v1.stream_info_response","error":{"code":404,"err_code":10059,"description":"stream not found"}}`,
		)
	}
	var answer map[string]any
	if err := json.Unmarshal(payload, &answer); err != nil {
		panic(err)
	}
	answer["cluster"] = group
	if last := l.last.Load(); last > 0 {
		answer["state"].(map[string]any)["last_seq"] = last
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return text
}

// Leaders as they are seen by those who ask.
var (
	follower = &jetstream.ClusterInfo{
		Replicas: []*jetstream.PeerInfo{
			{Name: "a", Active: time.Second},
			{Name: "b", Active: time.Second},
		},
	}
	follower2 = &jetstream.ClusterInfo{
		Leader: "a",
		Replicas: []*jetstream.PeerInfo{
			{Name: "a", Active: time.Second},
			{Name: "b", Active: time.Second},
		},
	}
	deposed = &jetstream.ClusterInfo{
		Leader:   "c",
		Replicas: []*jetstream.PeerInfo{{Name: "a", Active: 4 * time.Second}, {Name: "b"}},
	}
	leader = &jetstream.ClusterInfo{
		Leader: "a",
		Replicas: []*jetstream.PeerInfo{
			{Name: "c", Active: 2 * time.Minute},
			{Name: "b", Active: time.Second},
		},
	}
)

// In a cluster without a leader, a follower answers for a stream from what it has. It was believed:
// readers of a log that was whole were ended, and cursors that were good answered 410, some 650 of
// them in two runs with partitions.
func TestStaleAnswersExpireNoCursor(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]*jetstream.ClusterInfo{
		"a follower without a leader": follower, "a follower that has just found one": follower2,
		"a deposed leader": deposed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := streamstest.New(t)
			lies := newLiar(broker)
			f := startOn(t, broker.Connect(t, nats.InProcessServer(lies)), Config{})
			last := f.append(hubA, 0, 1, 5)
			page := f.page(hubA, "", 5)
			reader, err := f.Follow(t.Context(), hubA, page.Next)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			lies.last.Store(2)
			lies.group.Store(group)
			// Every reader asks the broker now, and the truth comes when it has a leader again.
			go func() {
				streamstest.Poll(time.Minute, func() bool { return lies.asked.Load() >= 5 })
				lies.last.Store(0)
				lies.group.Store(leader)
			}()
			if again := f.page(hubA, page.Next, 5); len(again.Events) != 0 {
				t.Errorf("a page behind the end has %d events", len(again.Events))
			}
			f.append(hubA, last, 6, 1)
			select {
			case <-reader.Ready():
			case <-time.After(time.Minute):
				t.Fatal("the reader hears nothing")
			}
			if events, err := reader.Next(t.Context(), 10); err != nil || len(events) != 1 {
				t.Errorf("the reader got %d events and %v, want the sixth event", len(events), err)
			}
		})
	}
}

// A cursor that another replica had handed out a moment before answered 410 where the broker's
// answer was older: also the word of a leader, if it is deposed without knowing. It must repeat it
// for longer than that can last.
func TestALeaderMustRepeatThatALogIsShorter(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	elsewhere := startOn(t, broker.Connect(t), Config{})
	lies := newLiar(broker)
	f := startOn(t, broker.Connect(t, nats.InProcessServer(lies)), Config{})
	f.append(hubA, 0, 1, 2)
	f.page(hubA, "", 5)
	last := elsewhere.append(hubA, 2, 3, 3)
	cursor := elsewhere.page(hubA, "", 5).Next

	// Without the feed, which brings the newest events, the answer is all that there is.
	fresh := newLiar(broker)
	late := startOn(t, broker.Connect(t, nats.InProcessServer(fresh)), Config{})
	fresh.last.Store(2)
	fresh.group.Store(leader)
	go func() {
		streamstest.Poll(time.Minute, func() bool { return fresh.asked.Load() >= 6 })
		fresh.last.Store(0)
	}()
	if page, err := late.Page(t.Context(), hubA, cursor, 5); err != nil || len(page.Events) != 0 {
		t.Errorf("behind the newest cursor: %d events and %v", len(page.Events), err)
	}
	// What the leader repeats is true.
	fresh.last.Store(2)
	beyond := DecodedCursor{EpochID: domain.NewEpochID(0xa), Seq: last + 10, Stored: time.Now()}.Cursor()
	if _, err := late.Page(t.Context(), hubA, beyond, 5); domain.CodeOf(
		err,
	) != domain.CodeCursorExpired {
		t.Errorf("a cursor that nobody can have got: %v, want cursor_expired", err)
	}
}

// A cluster's leader that is deposed and cut off does not know of streams that were made since: its
// word that there is none answered 410 for the events that readers had seen in it.
func TestAMissingStreamExpiresNoCursor(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	lies := newLiar(broker)
	f := startOn(t, broker.Connect(t, nats.InProcessServer(lies)), Config{})
	f.append(hubA, 0, 1, 5)
	page := f.page(hubA, "", 5)
	lies.gone.Store(true)
	lies.group.Store(leader)
	done := make(chan error, 1)
	go func() {
		_, err := f.Page(t.Context(), hubA, page.Next, 5)
		done <- err
	}()
	streamstest.Eventually(t, "the page asks four times", func() bool {
		return lies.asked.Load() >= 4
	})
	lies.gone.Store(false)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("no answer")
	}
}

// Without a leader for longer than somebody can wait, reading answers service_unavailable rather
// than a fault.
func TestNoLeaderIsUnavailable(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	lies := newLiar(broker)
	f := startOn(t, broker.Connect(t, nats.InProcessServer(lies)), Config{})
	f.append(hubA, 0, 1, 5)
	lies.group.Store(follower)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := f.Page(ctx, hubA, "", 5)
	var known *domain.Error
	if !errors.As(err, &known) || known.Code != domain.CodeServiceUnavailable ||
		known.RetryAfter <= 0 {
		t.Errorf("a page without a leader: %v, want service_unavailable", err)
	}
}

// What was read of a log by a replica that is ahead in the directory answered 410 at one that was
// behind: the cursor's epoch was unknown there.
func TestAnUnknownEpochIsLookedUpAfresh(t *testing.T) {
	t.Parallel()
	var f *fixture
	refreshed := errors.New("not asked")
	f = start(t, Config{Refresh: func(context.Context) error {
		refreshed = nil
		f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: 3})
		return nil
	}})
	last := f.append(hubA, 0, 1, 3)
	f.page(hubA, "", 5)
	if _, err := f.Append(t.Context(), hubA, last, []Record{
		record(hubA, domain.NewEpochID(0xb), 4),
	}); err != nil {
		t.Fatal(err)
	}
	after := DecodedCursor{EpochID: domain.NewEpochID(0xb), Seq: 3, Stored: time.Now()}.Cursor()
	page, err := f.Page(t.Context(), hubA, after, 5)
	if err != nil || refreshed != nil || fmt.Sprint(numbers(t, page.Events)) != "[4]" {
		t.Errorf(
			"behind a cursor of the new log: %v and %v; refreshed: %v", numbers(t, page.Events),
			err, refreshed,
		)
	}
}
