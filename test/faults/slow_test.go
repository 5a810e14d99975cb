package faults

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// slow lets a process run for a twentieth of the time, as on a machine with far too much to do,
// until the returned function is called.
func slow(s *harness.Service) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for !isClosed(stop) {
			s.Signal(syscall.SIGSTOP)
			pause(stop, 1900*time.Millisecond)
			s.Signal(syscall.SIGCONT)
			pause(stop, 100*time.Millisecond)
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// slowReplica lets a replica run for a twentieth of the time, and revokes a key at another one.
// Regression: a replica took itself for cut off, since its own goroutines were late, and answered
// every request with 503. A slow replica must answer, and must reject a revoked key at once.
func slowReplica(t *testing.T, replica, other *harness.Service, org string) {
	t.Helper()
	id, key := other.Key(org)
	client := harness.NewClient(t, replica.Base(), key)
	stream := client.Stream("/events/stream", "")
	defer stream.Close()
	end := slow(replica)
	defer end()
	answers, slowest := 0, time.Duration(0)
	for began := time.Now(); answers == 0 || time.Since(began) < 10*time.Second; {
		sent := time.Now()
		answer, err := client.Try(http.MethodGet, "/sites", nil)
		harness.Must(t, err)
		switch {
		case answer.Status == http.StatusOK:
			answers, slowest = answers+1, max(slowest, time.Since(sent))
		case !strings.Contains(string(answer.Body), "the database does not answer"):
			t.Fatalf("GET /sites: got status %d, want 200: %s", answer.Status, answer.Body)
		case time.Since(began) > time.Minute: // a twentieth of a busy machine is little for a query
			t.Fatal("no read of the slow replica was answered within a minute")
		}
	}
	if isClosed(stream.Ended) {
		t.Error("an event stream of the slow replica has ended, want it open")
	}
	began := time.Now()
	other.CLI("key", "revoke", id)
	revoked := time.Since(began)
	client.Rejected(http.MethodGet, "/sites", nil, "unauthenticated")
	t.Logf(
		"%d answers, the slowest after %v; the key was revoked after %v", answers,
		slowest.Round(time.Millisecond), revoked.Round(time.Millisecond),
	)
}
