package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a scripted service: it answers each request with the next step, and all others with the
// last. It replaces the network, so that time in a synctest bubble stands still while nothing
// happens.
type script struct {
	mu       sync.Mutex
	steps    []step
	requests []request
}

type step func(r *http.Request) (*http.Response, error)

// request is a recorded request with its time.
type request struct {
	method, path, query, body string
	header                    http.Header
	at                        time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	seen := request{
		method: r.Method,
		path:   r.URL.EscapedPath(),
		query:  r.URL.RawQuery,
		header: r.Header,
		at:     time.Now(),
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		seen.body = string(body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, seen)
	next := s.steps[min(len(s.requests), len(s.steps))-1]
	s.mu.Unlock()
	return next(r)
}

// seen returns the recorded requests.
func (s *script) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// playing returns a client of a service with the steps.
func playing(t *testing.T, change func(*Config), steps ...step) (*Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	cfg := Config{
		BaseURL:    "http://api.test/v1",
		APIKey:     "hc_dev_key",
		HTTPClient: &http.Client{Transport: s},
		Logger:     slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	streamstest.Must(t, err)
	return c, s
}

// answer is a step that answers with a body and header fields, given as names and values in turn.
func answer(status int, body string, header ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		return respond(r, status, io.NopCloser(strings.NewReader(body)), header...), nil
	}
}

// apiError is a step that answers with an API error.
func apiError(status int, kind ErrorType, header ...string) step {
	return answer(
		status,
		`{"error":{"type":"`+string(kind)+`","message":"told","request_id":"01ABC"}}`,
		header...)
}

// broken is a step that breaks the connection.
func broken(*http.Request) (*http.Response, error) { return nil, errBroken }

var errBroken = errors.New("connection reset by peer")

func respond(r *http.Request, status int, body io.ReadCloser, header ...string) *http.Response {
	response := &http.Response{
		StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"application/json"},
		}, Body: body, ContentLength: -1, Request: r,
	}
	for i := 0; i < len(header); i += 2 {
		response.Header.Set(header[i], header[i+1])
	}
	return response
}

// events is a step that answers with an event stream: the parts in turn, and then the end that
// `then` returns: nil ends the stream cleanly, errSilent keeps it open and silent, any other error
// breaks it.
func events(then error, parts ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		body, w := io.Pipe()
		stop := context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
		go func() {
			for _, part := range parts {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
			if !errors.Is(then, errSilent) {
				stop()
				w.CloseWithError(then)
			}
		}()
		return respond(r, http.StatusOK, body, "Content-Type", "text/event-stream"), nil
	}
}

var errSilent = errors.New("silent")

// envelope returns an event with a cursor, type and data.
func envelope(cursor string, kind EventType, data string) string {
	return fmt.Sprintf(`{"cursor":%q,"type":%q,"hub_id":"hub-1","device_id":3,`+
		`"time":"2026-01-02T03:04:05.120000Z","clock_trusted":true,"data":%s}`, cursor, kind, data)
}

// frame returns a scene event as in a stream.
func frame(cursor string) string { return frameOf(cursor, EventChannelObserved, `{}`) }

func frameOf(cursor string, kind EventType, data string) string {
	return "id: " + cursor + "\nevent: " + string(kind) + "\ndata: " +
		envelope(cursor, kind, data) + "\n\n"
}

func frames(cursors string) string {
	var all strings.Builder
	for _, cursor := range strings.Fields(cursors) {
		all.WriteString(frame(cursor))
	}
	return all.String()
}

// pageOf returns a page of events.
func pageOf(cursors, next string, more bool) step {
	var list []string
	for _, cursor := range strings.Fields(cursors) {
		list = append(list, envelope(cursor, EventChannelObserved, `{}`))
	}
	return answer(
		http.StatusOK,
		`{"data":[`+strings.Join(
			list, ",",
		)+`],"next_cursor":"`+next+`","has_more":`+strconv.FormatBool(more)+`}`,
	)
}
