package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"hubcloud/test/harness"
)

// feedReader follows the feed from its oldest events.
type feedReader struct {
	trial   *feedTrial
	query   string
	streams bool

	// turn is held while the reader reads a page, and by those who make it rest.
	turn sync.Mutex

	mu       sync.Mutex
	position string
	got      map[string][]harness.Event
	// expired counts the answers 410. After each the reader begins with the oldest events again.
	expired int
	// wrong are answers that no fault allows.
	wrong []string
}

// read starts a reader that belongs to a set.
func (f *feedTrial) read(set, query string, streams bool) {
	r := &feedReader{
		trial: f, query: query, streams: streams, got: map[string][]harness.Event{},
	}
	f.readers[set] = append(f.readers[set], r)
	f.reading.Go(func() {
		pause := time.NewTicker(100 * time.Millisecond)
		defer pause.Stop()
		for client := f.tenant.Client; ; {
			if r.streams && r.at() != "" {
				r.readStream(client)
			} else {
				r.readPages(client, set == restingReaders)
			}
			select {
			case <-f.stop:
				return
			case <-pause.C:
			}
		}
	})
}

func (r *feedReader) at() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.position
}

// readPages reads pages until an answer is none. A reader of streams reads one, for its position,
// and so does one that may have to rest.
func (r *feedReader) readPages(client *harness.Client, rests bool) {
	r.turn.Lock()
	defer r.turn.Unlock()
	for {
		path := "/events?limit=100&wait=2&" + r.query
		if at := r.at(); at != "" {
			path += "&after=" + url.QueryEscape(at)
		}
		answer, err := client.Do(http.MethodGet, path, nil)
		if err != nil || answer.Status >= http.StatusInternalServerError {
			return
		}
		var page harness.Page
		if answer.Status == http.StatusGone {
			r.beginAgain()
			return
		}
		if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &page) != nil {
			r.fail(answer)
			return
		}
		r.take(page.NextCursor, page.Data...)
		select {
		case <-r.trial.stop:
			return
		default:
		}
		if r.streams || rests {
			return
		}
	}
}

// readStream reads a stream until it ends.
func (r *feedReader) readStream(client *harness.Client) {
	s, answer, err := client.TryStream("/events/stream?"+r.query, r.at())
	if s == nil {
		if err == nil && answer.Status == http.StatusGone {
			r.beginAgain()
		} else if err == nil && answer.Status < http.StatusInternalServerError {
			r.fail(answer)
		}
		return
	}
	defer s.Close()
	for {
		select {
		case <-r.trial.stop:
			return
		case <-s.Ended:
			return
		case m := <-s.Messages:
			var event harness.Event
			switch {
			case m.ID == "":
			case m.Data == "":
				r.take(m.ID)
			case json.Unmarshal([]byte(m.Data), &event) != nil:
				r.fail(harness.Answer{Body: []byte(m.Data)})
			default:
				r.take(m.ID, event)
			}
		}
	}
}

// take adds events and moves the position after them.
func (r *feedReader) take(position string, events ...harness.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = position
	for _, e := range events {
		r.got[e.HubID] = append(r.got[e.HubID], e)
	}
}

// beginAgain makes the reader begin with the oldest events, after an answer 410. An event without a
// hub takes the place of the events that the reader may lack, in the log of each hub.
func (r *feedReader) beginAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = ""
	r.expired++
	for hub := range r.got {
		r.got[hub] = append(r.got[hub], harness.Event{Type: "feed.gap"})
	}
}

func (r *feedReader) fail(answer harness.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf("%d %s", answer.Status, answer.Body))
}
