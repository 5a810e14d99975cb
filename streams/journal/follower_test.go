package journal

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// losses is a connection that loses messages of the feed and of batches.
type losses struct {
	// feed loses every commit that is published, batch the next message of a batch.
	feed, batch atomic.Bool
	lost        atomic.Int64
}

func newLosses(proxy *streamstest.Rewriter) *losses {
	l := &losses{}
	// Without its sequence, a message of the feed is ignored.
	proxy.ChangeHeader(func(header []byte) []byte {
		if l.feed.Load() && bytes.Contains(header, []byte("Nats-Subject: journal.0\r\n")) &&
			!bytes.Contains(header, []byte("Nats-Num-Pending")) {
			l.lost.Add(1)
			return bytes.ReplaceAll(header, []byte("Nats-Sequence:"), []byte("Lost-Sequence:"))
		}
		return header
	})
	proxy.Change(func(payload []byte) []byte {
		if len(payload) > 20 && payload[0] == formatVersion && l.batch.CompareAndSwap(true, false) {
			l.lost.Add(1)
			return nil
		}
		return append([]byte{}, payload...)
	})
	return l
}

// Whatever the feed loses, a follower must deliver every commit once and in order.
func TestFollowerModel(t *testing.T) {
	t.Parallel()
	b := streamstest.New(t)
	j := open(t, b.Connect(t), Config{})
	proxy := streamstest.NewRewriter(b)
	l := newLosses(proxy)
	far := b.Connect(t, nats.InProcessServer(proxy))
	followed := open(t, far, Config{})
	s := begin(t, j, NewIndex(0))
	var all []Commit
	disconnects := 0
	rapid.Check(t, func(rt *rapid.T) {
		from := s.End() + 1
		// A commit or two before the follower starts.
		for range rapid.IntRange(0, 2).Draw(rt, "before") {
			all = append(all, s.store(hubA))
		}
		f, stop := follow(t, followed, from)
		defer stop()
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(rt, "count") {
					c := s.store(hubA, hubB)
					all = append(all, c)
					if rapid.IntRange(0, 3).Draw(rt, "offer") == 0 {
						f.Offer(c)
					}
				}
			},
			"lose": func(rt *rapid.T) {
				l.feed.Store(rapid.Bool().Draw(rt, "feed"))
				l.batch.Store(rapid.Bool().Draw(rt, "batch"))
			},
			"disconnect": func(rt *rapid.T) {
				if disconnects == 3 { // each takes seconds
					rt.Skip()
				}
				disconnects++
				streamstest.Must(rt, far.Cloud.ForceReconnect())
			},
			"sync": func(rt *rapid.T) {
				if got := f.sync(t); uint64(len(got)) != s.End()-from+1 {
					rt.Fatalf("%d commits from %d to %d", len(got), from, s.End())
				}
			},
		})
		got := f.sync(t)
		want := all[uint64(len(all))-(s.End()-from+1):]
		if !slices.EqualFunc(got, want, func(a, b Commit) bool {
			return a.id == b.id && slices.Equal(numbers(t, a.Records), numbers(t, b.Records))
		}) {
			rt.Fatalf("%d commits were delivered, or others than the %d stored", len(got), len(want))
		}
	})
	if l.lost.Load() == 0 {
		t.Error("nothing was lost")
	}
}

// Without Sync and without further commits, a follower must find out by itself that the feed has
// lost the last one.
func TestFollowerFindsALostEnd(t *testing.T) {
	t.Parallel()
	b := streamstest.New(t)
	proxy := streamstest.NewRewriter(b)
	l := newLosses(proxy)
	j := open(t, b.Connect(t, nats.InProcessServer(proxy)), Config{})
	f, _ := follow(t, j, 1)
	s := begin(t, j, NewIndex(0))
	f.sync(t)
	l.feed.Store(true)
	s.store(hubA)
	streamstest.Eventually(t, "the commit is delivered", func() bool {
		return f.Position() == s.End()
	})
	if l.lost.Load() == 0 {
		t.Error("the feed lost nothing")
	}
}

// A slow receiver must cost bounded memory, and miss nothing.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	s := begin(t, j, NewIndex(0))
	f := &followed{next: 1}
	slow := make(chan struct{})
	f.Follower = j.NewFollower(0, 1, func(commits []Commit) {
		<-slow
		f.add(commits)
	}, f.gap)
	streamstest.Run(t, "follower", f.Run)
	streamstest.Eventually(t, "the first commit is known", func() bool {
		f.Follower.mu.Lock()
		defer f.Follower.mu.Unlock()
		return f.known == s.End()
	})
	most := 0
	for range 2*queueBytes/MaxCommitBytes + 2 {
		records := s.records(slices.Repeat([]domain.HubID{hubA}, 11)...)
		for i := range records {
			records[i].Payload = make([]byte, MaxPayload)
		}
		c, err := s.Commit(t.Context(), records, s.Tip)
		streamstest.Must(t, err)
		s.apply(c)
		f.Follower.mu.Lock()
		most = max(most, f.queueBytes)
		f.Follower.mu.Unlock()
	}
	if most > queueBytes {
		t.Errorf("%d bytes are queued, want at most %d", most, queueBytes)
	}
	close(slow)
	if got := f.sync(t); uint64(len(got)) != s.End() {
		t.Errorf("%d commits were delivered, want %d", len(got), s.End())
	}
}

func TestExpiredCommitsAreReported(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	j := open(t, conns, Config{})
	x := NewIndex(0)
	s := begin(t, j, x)
	for range 5 {
		s.store(hubA)
	}
	keep(t, conns.Cloud, 2)
	f, stop := follow(t, j, 3) // of 6, the first two that are left are 5 and 6
	got := f.sync(t)
	if want := [][2]uint64{{3, 4}}; !slices.Equal(f.gaps, want) || len(got) != 2 || got[0].Seq != 5 {
		t.Errorf("missing are %v, then %d commits came; want 3 to 4, then 2", f.gaps, len(got))
	}
	stop()
	keep(t, conns.Cloud, 1)
	s.store(hubB)
	f, _ = follow(t, j, 1)
	if got = f.sync(t); len(got) != 2 || len(f.gaps) != 1 || f.gaps[0] != [2]uint64{1, 5} {
		t.Errorf("missing are %v, then %d commits came; want 1 to 5, then 2", f.gaps, len(got))
	}
}

// Times must grow also after every commit has expired, and a follower must get to the end.
func TestEverythingHasExpired(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	j := open(t, conns, Config{Retention: 100 * time.Millisecond, Reserve: 100 * time.Millisecond})
	s := begin(t, j, NewIndex(0))
	stored := s.store(hubA)
	streamstest.Eventually(t, "all commits have expired", func() bool {
		info, err := j.api.Info(t.Context(), streams.JournalStream(0))
		return err == nil && info.State.Msgs == 0
	})
	f, _ := follow(t, j, 1)
	f.sync(t)
	if f.Position() != stored.Seq {
		t.Errorf("the follower is at %d, want %d", f.Position(), stored.Seq)
	}
	next, err := j.OpenWriter(t.Context(), 0, always)
	streamstest.Must(t, err)
	if next.End() != stored.Seq+1 || next.LastTime().Before(stored.Time) {
		t.Errorf("the next writer begins with commit %d after %v, want %d and not before %v",
			next.End(), next.LastTime(), stored.Seq+1, stored.Time)
	}
}

func TestFollowerErrors(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	j := open(t, conns, Config{})
	s := begin(t, j, NewIndex(0))
	none := func([]Commit) {}
	noGap := func(uint64, uint64) {}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	beyond := j.NewFollower(0, s.End()+2, none, noGap)
	if err := beyond.Run(ctx); !errors.Is(err, ErrBeyondEnd) {
		t.Errorf("Run behind the end: %v, want ErrBeyondEnd", err)
	}
	if err := beyond.Sync(ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("Sync after Run: %v, want ErrStopped", err)
	}
	if _, err := conns.Cloud.Request(
		streams.JournalSubject(0), []byte("of another program"), time.Minute,
	); err != nil {
		t.Fatal(err)
	}
	if err := j.NewFollower(0, 1, none, noGap).Run(ctx); !errors.Is(err, ErrUnreadable) ||
		!strings.Contains(err.Error(), "commit 2") {
		t.Errorf("Run over a foreign message: %v, want ErrUnreadable for commit 2", err)
	}
}

// Followers come and go while commits are stored and while Sync is called.
func TestFollowersStartAndStop(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	s := begin(t, j, NewIndex(0))
	for range 20 {
		f, stop := follow(t, j, 1)
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				if err := f.Sync(t.Context()); err != nil && !errors.Is(err, ErrStopped) {
					t.Errorf("Sync: %v", err)
				}
			})
		}
		s.store(hubA)
		if s.End()%2 == 0 {
			f.sync(t)
		}
		stop()
		callers.Wait()
	}
}
