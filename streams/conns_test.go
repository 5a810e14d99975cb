package streams_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

const hub domain.HubID = "hub-7k2m-q4xd-93ta"

// TestConnect checks that each connection belongs to another account: a message in one account does
// not reach the others.
func TestConnect(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	if got := len(conns.Shards); got != streamstest.Shards {
		t.Fatalf("connections to shards: got %d, want %d", got, streamstest.Shards)
	}
	received := make(chan int, 8)
	for i, nc := range append([]*nats.Conn{conns.Sys, conns.Cloud}, conns.Shards...) {
		if _, err := nc.Subscribe("test.hello", func(*nats.Msg) { received <- i }); err != nil {
			t.Fatal(err)
		}
		streamstest.Must(t, nc.Flush())
	}
	shard := streams.ShardOf(hub, streamstest.Shards)
	own := conns.Shard(hub)
	if own != conns.Shards[shard] {
		t.Fatalf("Shard(%s): got another connection than that of shard %d", hub, shard)
	}
	streamstest.Must(t, own.Publish("test.hello", nil))
	streamstest.Must(t, own.Flush())
	if got, want := <-received, 2+shard; got != want {
		t.Errorf("account that received the message: got %d, want %d", got, want)
	}
	if got := len(received); got != 0 {
		t.Errorf("further accounts that received the message: got %d, want 0", got)
	}
}

// limitedBroker is a broker that accepts a limited number of connections and counts open ones.
type limitedBroker struct {
	*streamstest.Broker
	left atomic.Int32
	open atomic.Int32
}

func (b *limitedBroker) InProcessConn() (net.Conn, error) {
	if b.left.Add(-1) < 0 {
		return nil, errors.New("no more connections")
	}
	conn, err := b.Broker.InProcessConn()
	b.open.Add(1)
	return &countedConn{Conn: conn, open: &b.open}, err
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

// TestConnectFailure checks that Connect closes all connections if one account cannot be reached.
func TestConnectFailure(t *testing.T) {
	t.Parallel()
	broker := &limitedBroker{Broker: streamstest.New(t)}
	broker.left.Store(3)
	conns, err := streams.Connect(t.Context(), broker.Credentials(), nats.InProcessServer(broker))
	if err == nil || conns != nil || !strings.Contains(fmt.Sprint(err), "account") {
		t.Fatalf("Connect: got %v, error %v, want an error that names the account", conns, err)
	}
	streamstest.Eventually(
		t, "every connection is closed", func() bool { return broker.open.Load() == 0 },
	)
}
