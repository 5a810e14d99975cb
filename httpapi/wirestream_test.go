package httpapi

import (
	"io"
	"net/http"
	"testing"

	"hubcloud/streams/streamstest"
)

// A client of HTTP/1.0, which has no chunks, gets the events as they are until the connection ends.
func TestStreamOverHTTP10(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	conn, answers := s.raw(t, "GET "+streamPath+"?positions=true HTTP/1.0\r\nAuthorization: "+s.bearer+"\r\n\r\n")
	defer conn.Close()
	res, err := http.ReadResponse(answers, nil)
	streamstest.Must(t, err)
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
