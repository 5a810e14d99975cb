package signin_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

// deaf is a bucket whose watches tell nothing, as one whose server is cut off.
type deaf struct{ jetstream.KeyValue }

func (d deaf) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return deafWatcher{}, nil
}

type deafWatcher struct{ jetstream.KeyWatcher }

func (deafWatcher) Updates() <-chan jetstream.KeyValueEntry { return nil }

// TestEndThatTheWatchMisses: a watch that stood still told nothing of sessions that ended, for as
// long as its connection lasted.
func TestEndThatTheWatchMisses(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := signin.New(conns.Cloud, deaf{buckets.SignIn}, nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer func() {
		stop()
		running.Wait()
	}()
	token := begin(t, s, time.Hour)
	ended, forget := s.Ended(token)
	defer forget()
	if err := s.End(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	ends(t, "the end of a session whose watch stands still", ended)
}

// replica is a store on a connection of its own that hears of sessions that end, until the test
// does.
func replica(t *testing.T, broker *streamstest.Broker) *signin.Store {
	t.Helper()
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := signin.New(conns.Cloud, buckets.SignIn, nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return s
}

func begin(t *testing.T, s *signin.Store, life time.Duration) (token string) {
	t.Helper()
	now := time.Now()
	token, err := s.Begin(
		t.Context(),
		domain.PortalSession{Email: "ann@example.org", CreatedAt: now, ExpiresAt: now.Add(life)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func ends(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Errorf("%s is not told", what)
	}
}

// TestEndIsTold: a stream that was open when its visitor signed out went on until its next
// keepalive. Now everybody who waits for the end of a session hears of it at once, on every
// replica, and of no other's.
func TestEndIsTold(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	here, there := replica(t, broker), replica(t, broker)
	token, expiring, other := begin(t, here, time.Hour), begin(t, here, 2*time.Second), begin(t, here, time.Hour)
	on := func(s *signin.Store, token string) <-chan struct{} {
		ended, forget := s.Ended(token)
		t.Cleanup(forget)
		return ended
	}
	first, second, far, last, others := on(here, token), on(here, token), on(there, token), on(there, expiring), on(there, other)
	_, forget := there.Ended(token)
	forget()
	forget() // once is enough, and more do no harm
	if err := here.End(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	ends(t, "an end", first)
	ends(t, "an end, to the second who waits,", second)
	ends(t, "an end on another replica", far)
	ends(t, "the end of a session that expires", last)
	select {
	case <-others:
		t.Error("another session is told to have ended")
	default:
	}
}

// TestEndWhileTheBrokerIsAway: what nobody told of is found out when the broker is back.
func TestEndWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	s := replica(t, broker)
	token := begin(t, s, 2*time.Second)
	ended, forget := s.Ended(token)
	defer forget()
	broker.Stop()
	time.AfterFunc(3*time.Second, func() { broker.Start(t) })
	ends(t, "the end of a session that expired while the broker was away", ended)
}

// TestLeaderIsAsked: with several replicas of the bucket a session that was begun a moment ago was
// unknown for some milliseconds, and one that had ended was still known: a direct get is answered
// by any replica, also by one that is behind.
func TestLeaderIsAsked(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := conns.Cloud.SubscribeSync("$JS.API.DIRECT.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	s := signin.New(conns.Cloud, buckets.SignIn, nil)
	token := begin(t, s, time.Hour)
	if _, err := s.Session(t.Context(), token, time.Now()); err != nil {
		t.Error(err)
	}
	if err := s.End(t.Context(), token); err != nil {
		t.Error(err)
	}
	if _, err := s.Session(t.Context(), token, time.Now()); !errors.Is(err, noSession) {
		t.Errorf("a session that has ended: %v", err)
	}
	if err := conns.Cloud.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := direct.Pending(); n != 0 || err != nil {
		t.Errorf("%d questions went to any replica, %v", n, err)
	}
}
