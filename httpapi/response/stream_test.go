package response_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hubcloud/httpapi/response"
)

// connection is a ResponseWriter that records the size of its send buffer.
type connection struct {
	*httptest.ResponseRecorder
	sendBuffer int
}

func (c *connection) SetSendBuffer(bytes int) { c.sendBuffer = bytes }

// wrapper is what middleware puts around a ResponseWriter.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestBeginBoundsSendBuffer(t *testing.T) {
	t.Parallel()
	// Other requests share a connection of HTTP/2.
	for protocol, want := range map[int]int{1: 2 * response.BatchBytes, 2: 0} {
		c := &connection{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("GET", "/", nil)
		r.ProtoMajor = protocol
		s := response.NewStream(
			wrapper{c}, r, response.StreamConfig{Lifetime: time.Minute, Keepalive: time.Second},
		)
		if s.Begin(); c.sendBuffer != want {
			t.Errorf("HTTP/%d: send buffer is %d bytes, want %d", protocol, c.sendBuffer, want)
		}
	}
}
