package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// A client of HTTP/1.0, which has no chunks, gets the events as they are until the connection ends.
func TestStreamOverHTTP10(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	conn, answers := s.raw(t, "GET "+streamPath+"?positions=true HTTP/1.0\r\nAuthorization: "+s.bearer+"\r\n\r\n")
	defer conn.Close()
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("id: c0\n\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "id: c0\n\n" {
		t.Fatalf("got %q, %v, want the first cursor", first, err)
	}
	s.emit(1, 0)
	want := string(encodedEvent(1, 0).Frame)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	s.drain()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v, want the end", rest, err)
	}
}

// A client that does not read uses limited memory, also in the kernel, whose default is megabytes.
func TestStalledReaderTakesLittle(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stalled, answers := s.raw(
		t,
		fmt.Sprintf(
			"GET %s HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\n\r\n", streamPath, s.bearer,
		),
	)
	defer stalled.Close()
	if err := stalled.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.Peek(1); err != nil {
		t.Fatal(err)
	}
	const size = 10_000
	s.emit(1000, size)
	taken := func() uint64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return uint64(s.given)
	}
	var before uint64
	changed := time.Now()
	// until it takes no more
	streamstest.Eventually(t, "the stalled client takes no more events", func() bool {
		if now := taken(); now != before {
			before, changed = now, time.Now()
		}
		return before > 0 && time.Since(changed) > 20*time.Millisecond
	})
	// Sent but unread: a batch in the handler, and the kernel's buffers at both ends.
	if held := before * size; held > 1<<20+streamBatch*size {
		t.Errorf(
			"got %d bytes accepted for a client that does not read, want at most the buffers", held,
		)
	}
}
