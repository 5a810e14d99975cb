package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// Everything that is open ends cleanly and at once when the service stops.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ended := make(chan error)
	for range 50 {
		o := s.stream()
		o.expect("id: c0\n\n")
		go func() {
			_, err := io.ReadAll(o.text)
			ended <- err
		}()
		go func() {
			req, _ := http.NewRequest(
				"GET", s.base+"/v1/hubs/"+string(hubOne)+"/events?wait=60", nil,
			)
			req.Header.Set("Authorization", s.bearer)
			res, err := s.client.Do(req)
			if err == nil {
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			ended <- err
		}()
	}
	// Shutdown must not wait five seconds for a request on connections that browsers open in
	// advance.
	silent, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	streamstest.Must(t, err)
	defer silent.Close()
	s.drain()
	for range 100 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	if err := s.server.Shutdown(ctx); err != nil || time.Since(began) > 4*time.Second {
		t.Errorf("stopped after %s with %v, want nil within 4 s", time.Since(began), err)
	}
}
