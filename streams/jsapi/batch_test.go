package jsapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// describe returns the sequences and the data of messages, such as "1=a 3=c".
func describe(msgs []jsapi.Message) string {
	var text []byte
	for i, m := range msgs {
		if i > 0 {
			text = append(text, ' ')
		}
		text = fmt.Appendf(text, "%d=%s", m.Sequence, m.Data)
	}
	return string(text)
}

// deleteMessage removes a message from the test stream.
func deleteMessage(t *testing.T, nc *nats.Conn, sequence uint64) {
	t.Helper()
	streamstest.Must(t, jsapi.New(nc).Erase(t.Context(), testStream, sequence))
}

func TestBatch(t *testing.T) {
	t.Parallel()
	nc := newStream(t)
	pool := jsapi.New(nc).NewBatchPool(2, 10)
	defer pool.Close()
	get := func(name string, r jsapi.BatchRequest, want string) {
		t.Helper()
		if r.Stream == "" {
			r.Stream = testStream
		}
		msgs, err := pool.Get(t.Context(), r)
		if got := describe(msgs); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	get("empty stream", jsapi.BatchRequest{Messages: 10}, "")
	get("empty stream, bare", jsapi.BatchRequest{Messages: 10, Bare: true}, "")
	store(t, nc, "test.a", "a", "b", "c")
	between := time.Now()
	store(t, nc, "test.b", "d", "e", "f")
	get("all", jsapi.BatchRequest{Messages: 10}, "1=a 2=b 3=c 4=d 5=e 6=f")
	get("bare", jsapi.BatchRequest{Messages: 10, Bare: true}, "1=a 2=b 3=c 4=d 5=e 6=f")
	get("cut at the messages", jsapi.BatchRequest{From: 2, Messages: 2}, "2=b 3=c")
	get("cut at the bytes", jsapi.BatchRequest{Messages: 10, Bytes: 10}, "1=a 2=b")
	get("one subject", jsapi.BatchRequest{Messages: 10, Filter: "test.b"}, "4=d 5=e 6=f")
	get("since", jsapi.BatchRequest{Messages: 10, Since: between}, "4=d 5=e 6=f")
	get("behind the end", jsapi.BatchRequest{From: 7, Messages: 10}, "")
	deleteMessage(t, nc, 1)
	deleteMessage(t, nc, 4)
	get("with deleted messages", jsapi.BatchRequest{Messages: 10}, "2=b 3=c 5=e 6=f")
	get(
		"bare with deleted messages", jsapi.BatchRequest{Messages: 10, Bare: true},
		"2=b 3=c 5=e 6=f",
	)
	_, err := pool.Get(t.Context(), jsapi.BatchRequest{Stream: "NONE", Messages: 1})
	if !errors.Is(err, jsapi.ErrNoStream) {
		t.Errorf("a stream that does not exist: %v; want ErrNoStream", err)
	}
	for filter, want := range map[string]int{"test.>": 4, "test.b": 2, "test.none": 0} {
		n, err := jsapi.New(nc).CountMessages(t.Context(), testStream, filter)
		if n != want || err != nil {
			t.Errorf("CountMessages(%s) = %d, %v; want %d", filter, n, err, want)
		}
	}
}

// Late messages of a batch that was not collected do not appear in the next one.
func TestBatchAfterAbandonedOne(t *testing.T) {
	t.Parallel()
	nc := newStream(t)
	store(t, nc, "test.a", "a", "b", "c")
	g, err := jsapi.New(nc).NewBatchGetter(3)
	streamstest.Must(t, err)
	defer g.Close()
	for _, r := range []jsapi.BatchRequest{
		{Stream: testStream, Messages: 3}, {Stream: testStream, From: 2, Messages: 3},
	} {
		streamstest.Must(t, g.Request(r))
	}
	if msgs, err := g.Collect(t.Context()); err != nil || describe(msgs) != "2=b 3=c" {
		t.Errorf("Collect: %q, %v; want the second batch", describe(msgs), err)
	}
}

// A message that is lost on its way must not be taken for one that was removed.
func TestTornBatch(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	makeStream(t, broker.Connect(t).Cloud)
	lossy := streamstest.NewRewriter(broker)
	nc := broker.Connect(t, nats.InProcessServer(lossy)).Cloud
	store(t, nc, "test.a", "one", "two", "three")
	lossy.Change(func(payload []byte) []byte {
		if bytes.Equal(payload, []byte("two")) {
			return nil
		}
		return append([]byte{}, payload...)
	})
	pool := jsapi.New(nc).NewBatchPool(1, 10)
	defer pool.Close()
	for _, bare := range []bool{false, true} {
		_, err := pool.Get(
			t.Context(), jsapi.BatchRequest{Stream: testStream, Messages: 10, Bare: bare},
		)
		if !errors.Is(err, jsapi.ErrTornBatch) {
			t.Errorf("bare %t: %v; want ErrTornBatch", bare, err)
		}
	}
	lossy.Change(nil)
	msgs, err := pool.Get(t.Context(), jsapi.BatchRequest{Stream: testStream, Messages: 10})
	if err != nil || describe(msgs) != "1=one 2=two 3=three" {
		t.Errorf("again: %q, %v; want all messages", describe(msgs), err)
	}
}

// Get of a batch that never ends returns when the caller's context ends.
func TestBatchWithoutEnd(t *testing.T) {
	t.Parallel()
	nc := streamstest.Start(t).Cloud
	respond(t, nc, "mute.DIRECT.GET."+testStream, "")
	pool := jsapi.New(nc).WithPrefix("mute").NewBatchPool(1, 1)
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := pool.Get(ctx, jsapi.BatchRequest{Stream: testStream, Messages: 1})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without an answer: %v; want DeadlineExceeded", err)
	}
}
