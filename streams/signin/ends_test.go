package signin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

// silent is a bucket whose watches report nothing, as when their server is cut off.
type silent struct{ jetstream.KeyValue }

func (silent) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return silentWatcher{}, nil
}

type silentWatcher struct{ jetstream.KeyWatcher }

func (silentWatcher) Updates() <-chan jetstream.KeyValueEntry { return nil }

// A watch that had stopped delivering missed ended sessions for as long as its connection lasted.
func TestEndMissedByTheWatch(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	s := signin.New(conns.Cloud, silent{buckets.SignIn}, nil)
	streamstest.Run(t, "sign-ins", s.Run)
	token := begin(t, s, time.Hour)
	ended, forget := s.Ended(token)
	defer forget()
	streamstest.Must(t, s.End(t.Context(), token))
	awaitEnd(t, "a session whose watch delivers nothing", ended)
}

// replica returns a store with a connection of its own that runs until the test ends.
func replica(t *testing.T, broker *streamstest.Broker) *signin.Store {
	t.Helper()
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	s := signin.New(conns.Cloud, buckets.SignIn, nil)
	streamstest.Run(t, "sign-ins", s.Run)
	return s
}

func begin(t *testing.T, s *signin.Store, life time.Duration) (token string) {
	t.Helper()
	now := time.Now()
	token, err := s.Begin(
		t.Context(),
		domain.PortalSession{Email: "ann@example.org", CreatedAt: now, ExpiresAt: now.Add(life)},
	)
	streamstest.Must(t, err)
	return token
}

func awaitEnd(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Errorf("%s: Ended is still open after a minute", what)
	}
}

// A stream of a visitor who had signed out stayed open until its next keepalive. Ended is closed on
// every replica, and for no other session.
func TestEnded(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	here, there := replica(t, broker), replica(t, broker)
	token, other := begin(t, here, time.Hour), begin(t, here, time.Hour)
	expiring := begin(t, here, 2*time.Second)
	on := func(s *signin.Store, token string) <-chan struct{} {
		ended, forget := s.Ended(token)
		t.Cleanup(forget)
		return ended
	}
	first, second := on(here, token), on(here, token)
	far, last, others := on(there, token), on(there, expiring), on(there, other)
	_, forget := there.Ended(token)
	forget()
	forget() // a second call does nothing
	streamstest.Must(t, here.End(t.Context(), token))
	awaitEnd(t, "the first waiter", first)
	awaitEnd(t, "the second waiter", second)
	awaitEnd(t, "a waiter on another replica", far)
	awaitEnd(t, "a session that expires", last)
	select {
	case <-others:
		t.Error("Ended of another session is closed")
	default:
	}
}

// TestEndWhileTheBrokerIsAway checks sessions that expire meanwhile: no watch reports them.
func TestEndWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	s := replica(t, broker)
	token := begin(t, s, 2*time.Second)
	ended, forget := s.Ended(token)
	defer forget()
	broker.Stop()
	time.AfterFunc(3*time.Second, func() { broker.Start(t) })
	awaitEnd(t, "a session that expired while the broker was away", ended)
}

// With several replicas of the bucket a new session was unknown for some milliseconds, and an ended
// one still known: any replica may answer a direct get, also one that is behind. A Store must send
// no direct gets.
func TestLeaderIsAsked(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	direct, err := conns.Cloud.SubscribeSync("$JS.API.DIRECT.GET.>")
	streamstest.Must(t, err)
	s := signin.New(conns.Cloud, buckets.SignIn, nil)
	token := begin(t, s, time.Hour)
	if _, err := s.Session(t.Context(), token, time.Now()); err != nil {
		t.Error(err)
	}
	streamstest.Must(t, s.End(t.Context(), token))
	if _, err := s.Session(t.Context(), token, time.Now()); !errors.Is(err, noSession) {
		t.Errorf("an ended session: got %v, want ErrNotSignedIn", err)
	}
	streamstest.Must(t, conns.Cloud.Flush())
	if n, _, err := direct.Pending(); n != 0 || err != nil {
		t.Errorf("got %d direct gets, %v, want none", n, err)
	}
}
