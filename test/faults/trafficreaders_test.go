package faults

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"hubcloud/test/harness"
)

// follow reads until the end of the test, and then the pages of what is left.
func (r *traffic) follow(f *trafficReader, client int) {
	for quiet := 0; quiet < 3; client++ {
		before := len(f.got)
		if strings.HasPrefix(f.how, "stream") && f.cursor != "" && !isClosed(r.stopReading) {
			r.followStream(f, client%len(r.clients))
		} else {
			r.followPages(f, client%len(r.clients))
		}
		if quiet++; !isClosed(r.stopReading) || len(f.got) > before {
			quiet = 0
		}
	}
}

// followPages reads pages of one replica until it fails.
func (r *traffic) followPages(f *trafficReader, client int) {
	wait := "0"
	if f.how == "long-polls" {
		wait = "5"
	}
	for {
		query := "&limit=500&wait=" + wait
		if f.cursor != "" {
			query += "&after=" + f.cursor
		}
		answer, ok := r.request(client, f.how, http.MethodGet, f.path("", query), nil)
		if !ok {
			pause(r.stopReading, 200*time.Millisecond)
			return
		}
		var page harness.Page
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			r.t.Errorf("page: %v", err)
			return
		}
		f.got, f.cursor = append(f.got, page.Data...), page.NextCursor
		if isClosed(r.stopReading) && len(page.Data) == 0 || strings.HasPrefix(f.how, "stream") {
			return
		}
		if f.how != "long-polls" {
			pause(r.stopReading, 250*time.Millisecond)
		}
	}
}

// followStream reads a stream of one replica until it ends.
func (r *traffic) followStream(f *trafficReader, client int) {
	stream, answer, err := r.clients[client].TryStream(f.path("/stream", ""), f.cursor)
	if stream == nil {
		r.mu.Lock()
		switch {
		case err != nil:
			r.answers["stream none"]++
		case isTemporary(false, answer):
			r.answers["stream "+statusAndMessage(answer)]++
		default:
			r.answers["stream "+statusAndMessage(answer)]++
			r.recordWrong(
				"replica %d: stream of %s: got %d %s", client, f.hub, answer.Status,
				answer.Body,
			)
		}
		r.mu.Unlock()
		pause(r.stopReading, 200*time.Millisecond)
		return
	}
	defer stream.Close()
	for {
		select {
		case m := <-stream.Messages:
			r.handleMessage(f, m)
		case <-stream.Ended:
			for len(stream.Messages) > 0 {
				r.handleMessage(f, <-stream.Messages)
			}
			return
		case <-time.After(2 * time.Second):
			if isClosed(r.stopReading) {
				return
			}
		}
	}
}

// handleMessage records the event of a message.
func (r *traffic) handleMessage(f *trafficReader, m harness.Message) {
	f.cursor, f.got = take(r.t, m, f.cursor, f.got)
}
