package broker_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestHandshakesWaitForTheCallout checks that TLS handshakes of hubs wait until the auth
// callout has a subscriber, and fail when the broker stops.
func TestHandshakesWaitForTheCallout(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	s := start(t, c)
	conns := connect(t, s)
	handshakes := make(chan error, 2)
	handshake := func() {
		conn, err := tls.Dial("tcp", s.MQTTAddr(), c.MQTTTLS)
		if err == nil {
			err = conn.Close()
		}
		handshakes <- err
	}
	go handshake()
	go handshake()
	select {
	case err := <-handshakes:
		t.Fatalf("handshake without a subscriber: got %v, want that it waits", err)
	case <-time.After(200 * time.Millisecond):
	}
	sub, err := conns.Callout.QueueSubscribe("$SYS.REQ.USER.AUTH", "test", func(*nats.Msg) {})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-handshakes; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(sub.Unsubscribe(), conns.Callout.Flush()); err != nil {
		t.Fatal(err)
	}
	go handshake()
	select {
	case err := <-handshakes:
		t.Fatalf("handshake without a subscriber: got %v, want that it waits", err)
	case <-time.After(200 * time.Millisecond):
	}
	began := time.Now()
	stop(t, s)
	if err := <-handshakes; err == nil {
		t.Error("handshake with a stopped broker: got nil, want an error")
	}
	if took := time.Since(began); took > testTimeout/2 {
		t.Errorf("Close took %v, want less than %v", took, testTimeout/2)
	}
}
