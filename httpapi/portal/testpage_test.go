package portal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// page reads a stream as a page of the portal does.
type page struct {
	t      testing.TB
	lines  *bufio.Scanner
	cancel context.CancelFunc
	// position is the position to reconnect with.
	position string
	rejected bool
}

// block is one event of a stream.
type block struct {
	Type string
	Data json.RawMessage
}

// open opens a stream, which ends with the test.
func (r *testLive) open(want streamRequest) *page {
	r.t.Helper()
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			viewer := streamViewer{
				OrgID:     "org",
				MemberID:  "member",
				Ended:     r.ended,
				SignedOut: r.signedOut,
				SignedIn: func(context.Context) bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return !r.out
				},
			}
			if err := r.live.stream(w, request, viewer, want); err != nil {
				http.Error(w, err.Error(), http.StatusTooManyRequests)
			}
		}),
	)
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, "POST", server.URL, nil)
	streamstest.Must(r.t, err)
	response, err := server.Client().Do(request)
	streamstest.Must(r.t, err)
	p := &page{
		t:        r.t,
		lines:    bufio.NewScanner(response.Body),
		cancel:   cancel,
		rejected: response.StatusCode != http.StatusOK,
	}
	p.lines.Buffer(nil, 1<<20)
	r.t.Cleanup(func() {
		cancel()
		response.Body.Close()
		server.Close()
	})
	return p
}

// next returns the next event, and false at the stream's end.
func (p *page) next() (block, bool) {
	var b block
	for p.lines.Scan() {
		line := p.lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			p.position = id
		}
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			b.Type = text
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			b.Data = json.RawMessage(text)
		}
		if line == "" && b.Data != nil {
			return b, true
		}
	}
	return b, false
}

// nextAfterStates returns the next event but hub.portal_begin and hub.portal_states.
func (p *page) nextAfterStates() (b block, ok bool) {
	for {
		if b, ok = p.next(); !ok || b.Type != "hub.portal_begin" && b.Type != "hub.portal_states" {
			return b, ok
		}
	}
}

// awaitPosition reads until the stream sends another position than a former one.
func (p *page) awaitPosition(former string) {
	p.t.Helper()
	for p.position == former {
		if !p.lines.Scan() {
			p.t.Fatal("stream ended, want another position")
		}
		if id, ok := strings.CutPrefix(p.lines.Text(), "id: "); ok {
			p.position = id
		}
	}
}

// await skips events up to one of a type, and unmarshals its data.
func (p *page) await(eventType string, into any) {
	p.t.Helper()
	for {
		b, ok := p.next()
		if !ok {
			p.t.Fatalf("stream ended, want %s", eventType)
		}
		if b.Type != eventType {
			continue
		}
		streamstest.Must(p.t, json.Unmarshal(b.Data, into))
		return
	}
}

// states skips events up to the next states of hubs.
func (p *page) states() (sent states) {
	p.t.Helper()
	p.await("hub.portal_states", &sent)
	return sent
}

// values reads events until each hub has reported its last value. It returns all values by hub.
func (p *page) values(last map[domain.HubID]int) map[domain.HubID][]int {
	p.t.Helper()
	got := map[domain.HubID][]int{}
	for missing := len(last); missing > 0; {
		var event logEvent
		p.await("channel.observed", &event)
		var data struct{ Value int }
		streamstest.Must(p.t, json.Unmarshal(event.Data, &data))
		got[event.HubID] = append(got[event.HubID], data.Value)
		if data.Value == last[event.HubID] {
			missing--
		}
	}
	return got
}

// levels returns the data of channel.observed events with the values from, from+1, … to.
func levels(from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf(`{"key":"level","endpoint":0,"value":%d}`, n))
	}
	return all
}

// sequence returns from, from+1, … to.
func sequence(from, to int) []int {
	all := []int{}
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// begin is the data of hub.portal_begin.
type begin struct{ Anew bool }

// states is the data of hub.portal_states.
type states struct {
	Whole bool
	Hubs  []hubState
}
