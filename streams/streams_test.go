package streams_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

const hub domain.HubID = "hub-7k2m-q4xd-93ta"

func newJetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestConnectReachesEveryAccount(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	if len(conns.Shards) != streamstest.Shards {
		t.Fatalf("%d shards", len(conns.Shards))
	}
	// What is said in one account is not heard in another.
	heard := make(chan string, 8)
	for i, nc := range append([]*nats.Conn{conns.Sys, conns.Cloud}, conns.Shards...) {
		if _, err := nc.Subscribe("test.hello", func(*nats.Msg) { heard <- fmt.Sprint(i) }); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	own := conns.Shard(hub)
	if own != conns.Shards[streams.ShardOf(hub, streamstest.Shards)] {
		t.Fatal("a hub's connection is not that of its shard")
	}
	if err := own.Publish("test.hello", nil); err != nil {
		t.Fatal(err)
	}
	if err := own.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := <-heard, fmt.Sprint(2+streams.ShardOf(hub, streamstest.Shards)); got != want ||
		len(heard) > 0 {
		t.Errorf("heard in account %s and %d others", got, len(heard))
	}
}

// fewConns is a broker that takes so many connections and then no more.
type fewConns struct {
	*streamstest.Broker
	left atomic.Int32
	open atomic.Int32
}

func (f *fewConns) InProcessConn() (net.Conn, error) {
	if f.left.Add(-1) < 0 {
		return nil, errors.New("no more")
	}
	conn, err := f.Broker.InProcessConn()
	f.open.Add(1)
	return &countedConn{Conn: conn, open: &f.open}, err
}

type countedConn struct {
	net.Conn
	open   *atomic.Int32
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func TestConnectClosesWhatItOpenedWhenOneAccountFails(t *testing.T) {
	t.Parallel()
	broker := &fewConns{Broker: streamstest.New(t)}
	broker.left.Store(3)
	conns, err := streams.Connect(t.Context(), broker.Credentials(), nats.InProcessServer(broker))
	if err == nil || conns != nil || !strings.Contains(err.Error(), "account") {
		t.Fatalf("connected to %v, %v", conns, err)
	}
	streamstest.Eventually(
		t, "every connection is closed", func() bool { return broker.open.Load() == 0 },
	)
}

func TestOpenBucketsTwiceIsOnce(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	first, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Presence.Put(t.Context(), string(hub), []byte("1")); err != nil {
		t.Fatal(err)
	}
	second, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if entry, err := second.Presence.Get(t.Context(), string(hub)); err != nil ||
		string(entry.Value()) != "1" {
		t.Errorf("%v, %v", entry, err)
	}
	for _, kv := range []jetstream.KeyValue{
		second.Presence, second.Ledger, second.Leases, second.Replicas, second.Installation,
	} {
		status, err := kv.Status(t.Context())
		if err != nil || status.History() != 1 {
			t.Errorf("bucket %s: %v, %v", kv.Bucket(), status, err)
		}
	}
}

// A bucket with other properties may hold somebody's truth: it is refused, and left as it is.
func TestOpenBucketsRefusesAnotherKindOfBucket(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	js := newJetStream(t, conns.Cloud)
	kv, err := js.CreateKeyValue(
		t.Context(),
		jetstream.KeyValueConfig{Bucket: "ledger", History: 5, Storage: jetstream.MemoryStorage},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	_, err = streams.OpenBuckets(t.Context(), conns, 1)
	if !errors.Is(err, streams.ErrIncompatible) {
		t.Fatalf("opened with %v", err)
	}
	for _, part := range []string{
		"ledger", "max_msgs_per_subject is 5 and should be 1",
		"storage is memory and should be file",
	} {
		if !strings.Contains(strings.ToLower(err.Error()), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if entry, err := kv.Get(t.Context(), "k"); err != nil || string(entry.Value()) != "v" {
		t.Errorf("the bucket has changed: %v", err)
	}
}

func TestDeclareSaysEverythingThatDiffers(t *testing.T) {
	t.Parallel()
	js := newJetStream(t, streamstest.Start(t).Cloud)
	config := jetstream.StreamConfig{
		Name: "TEST", Subjects: []string{"test.>"}, Storage: jetstream.FileStorage, Replicas: 1,
		DenyDelete: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: "test.>", Destination: "feed.test.>"},
	}
	for range 2 {
		if _, err := streams.Declare(t.Context(), js, config); err != nil {
			t.Fatal(err)
		}
	}
	other := config
	other.Subjects, other.MaxAge, other.DenyDelete, other.RePublish, other.MaxMsgs = []string{
		"test.a",
	}, time.Hour, false, nil, 10
	_, err := streams.Declare(t.Context(), js, other)
	if !errors.Is(err, streams.ErrIncompatible) {
		t.Fatalf("declared with %v", err)
	}
	for _, part := range []string{
		"subjects", "max_age", "deny_delete", "republish", "max_msgs is 0 and should be 10",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
	stream, err := js.Stream(t.Context(), "TEST")
	if err != nil || !slices.Equal(stream.CachedInfo().Config.Subjects, config.Subjects) {
		t.Errorf("the stream has changed: %v", err)
	}
}
