package faults

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// cutOffFromBroker stops the broker, which runs in the first replica. Regression: on a replica that
// was cut off from the broker, a revoked key stayed valid, and streams and long polls hung until the
// outage ended.
func cutOffFromBroker(
	t *testing.T, first, second *harness.Service, tenant *harness.Tenant, hub *virtualhub.Hub,
) {
	_, key := first.Key(tenant.Org)
	client := harness.NewClient(t, second.Base(), key)
	stream := harness.OpenStream(t, client, hub.ID(), "")
	<-stream.Messages
	polled := make(chan harness.Answer, 1)
	after := client.Head(hub.ID())
	go func() {
		answer, err := client.Do(
			http.MethodGet, "/hubs/"+hub.ID()+"/events?wait=60&after="+after, nil,
		)
		if err != nil {
			t.Error(err)
		}
		polled <- answer
	}()
	streamstest.Eventually(t, "the long-poll waits", func() bool {
		return second.Metrics().Value(t, "hubcloud_httpapi_long_polls") > 0
	})

	first.Signal(syscall.SIGSTOP)
	began := time.Now()
	running := true
	resume := func() {
		if running {
			running = false
			first.Signal(syscall.SIGCONT)
		}
	}
	defer resume()
	select {
	case <-stream.Ended:
		t.Logf("the stream ended after %v", time.Since(began))
	case <-time.After(time.Minute):
		t.Fatal("stream: still open, want it ended")
	}
	select {
	case answer := <-polled:
		t.Logf("the long-poll was answered after %v", time.Since(began))
		if answer.Status != http.StatusServiceUnavailable ||
			answer.Header.Get("Retry-After") == "" {
			t.Errorf("long poll: got %d %s, want 503", answer.Status, answer.Body)
		}
	case <-time.After(time.Minute):
		t.Fatal("long poll: no answer")
	}
	for _, path := range []string{
		"/sites", "/hubs", "/hubs/" + hub.ID() + "/events", "/hubs/" + hub.ID() + "/events/stream",
	} {
		sent := time.Now()
		apiError := client.Rejected(http.MethodGet, path, nil, "service_unavailable")
		t.Logf("%s after %v: %s", path, time.Since(sent), apiError.Message)
	}
	resume()
	streamstest.Eventually(t, "the replica answers again", func() bool {
		answer, err := client.Do(http.MethodGet, "/sites", nil)
		return err == nil && answer.Status == http.StatusOK
	})
}

// resumedReplica stops a replica process while a key is revoked. A regression: after it resumed, the
// replica accepted the key until it had read the revocation.
func resumedReplica(t *testing.T, first, second *harness.Service, org string) {
	id, key := first.Key(org)
	client := harness.NewClient(t, second.Base(), key)
	client.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	second.Signal(syscall.SIGSTOP)
	began := time.Now()
	first.CLI("key", "revoke", id)
	t.Logf("revoked after %v", time.Since(began))
	answers := make(chan harness.Answer, 20)
	for range cap(answers) {
		go func() {
			// the request waits in the stopped replica's socket
			answer, err := client.Do(http.MethodGet, "/sites", nil)
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
	}
	second.Signal(syscall.SIGCONT)
	for range cap(answers) {
		if answer := <-answers; answer.Status != http.StatusUnauthorized &&
			answer.Status != http.StatusServiceUnavailable {
			t.Errorf("revoked key: got %d %s, want 401", answer.Status, answer.Body)
		}
	}
	streamstest.Eventually(t, "the key is known to be revoked", func() bool {
		answer, err := client.Do(http.MethodGet, "/sites", nil)
		return err == nil && answer.Status == http.StatusUnauthorized
	})
}
