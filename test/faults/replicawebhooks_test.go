package faults

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// endpoint is the receiver of a webhook. It notes the cursors that it gets, and whether two requests
// were under way at once.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	underWay int
	together bool
	cursors  []string
}

func (r *endpoint) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.underWay++
	r.together = r.together || r.underWay > 1
	r.mu.Unlock()
	var content struct{ Data []harness.Event }
	body, err := io.ReadAll(req.Body)
	harness.Elapse(50 * time.Millisecond) // a second deliverer would post meanwhile
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay--
	if err != nil || json.Unmarshal(body, &content) != nil {
		return // the sender was killed
	}
	for _, e := range content.Data {
		r.cursors = append(r.cursors, e.Cursor)
	}
}

// wantAll waits for the newest event of the hub, and fails unless the endpoint got all since its first one
// in order, apart from what came again.
func (r *endpoint) wantAll(t *testing.T, client *harness.Tenant, hub *virtualhub.Hub) {
	t.Helper()
	harness.Stored(t, hub)
	head := client.Head(hub.ID())
	streamstest.Eventually(t, "the newest event is delivered", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Contains(r.cursors, head)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	place, next := map[string]int{}, -1
	for i, e := range client.AllEvents(hub.ID(), "") {
		place[e.Cursor] = i
	}
	for _, cursor := range r.cursors {
		at, known := place[cursor]
		if next < 0 {
			next = at
		}
		if !known || at > next {
			t.Fatalf("got event %d (%s), want %d first", at, cursor, next)
		}
		next = max(next, at+1)
	}
	if r.together {
		t.Error("two requests were under way at once, want one deliverer")
	}
}

// webhooksOfReplicas kills the replica that delivers for a webhook, and stops one for longer than its
// lease: the other one goes on, loses and reorders nothing, and no two deliver at once.
func webhooksOfReplicas(
	t *testing.T, deliverer *harness.Service, client *harness.Tenant, hub *virtualhub.Hub,
) {
	report := func(n int) {
		t.Helper()
		for i := range n {
			harness.Must(t, hub.Report(1, virtualhub.ChannelRef{Key: "battery"}, 50+i%2))
		}
	}
	posted := func() float64 {
		return deliverer.For(t).Metrics().Value(t, "hubcloud_webhook_requests_total")
	}
	// The replicas divide the webhooks. One for which the deliverer posts is found by trying.
	delivered := func() *endpoint {
		t.Helper()
		for {
			r := &endpoint{}
			r.Server = httptest.NewServer(r)
			t.Cleanup(r.Close)
			var w struct{ ID string }
			before := posted()
			client.Must(http.MethodPost, "/webhooks", map[string]any{
				"url": r.URL, "filter": map[string]any{"hub_id": []string{hub.ID()}},
			}, http.StatusCreated).JSON(t, &w)
			report(2)
			r.wantAll(t, client, hub)
			if posted() > before {
				return r
			}
			client.Must(http.MethodDelete, "/webhooks/"+w.ID, nil, http.StatusNoContent)
		}
	}
	r := delivered()
	report(120)
	deliverer.Kill()
	report(120)
	r.wantAll(t, client, hub)
	deliverer.Begin()
	report(120)
	r.wantAll(t, client, hub)

	r = delivered()
	report(120)
	deliverer.Signal(syscall.SIGSTOP)
	report(120)
	r.wantAll(t, client, hub)
	deliverer.Signal(syscall.SIGCONT)
	report(120)
	r.wantAll(t, client, hub)
}
