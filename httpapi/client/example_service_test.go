package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"hubcloud/httpapi/client"
)

// building serves as much of the API as the examples need, over real HTTP, with one hub that has
// one lock. `hubcloud dev` is a real service.
type building struct {
	mu     sync.Mutex
	events []string      // envelopes; the cursor of the n-th is c<n>
	more   chan struct{} // closed when an event comes
	locked bool
	jammed bool
	// expired is how many events are no longer stored.
	expired int
}

// service starts a building and returns a client of it.
func service() (c *client.Client, b *building, stop func()) {
	b = &building{more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hubs", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(
			w,
			`{"data":[{"id":"hub-7k2m-q4xd-93ta","name":"Lobby","site_id":"0195",`+
				`"connection":{"status":"online","since":"2026-01-02T03:04:05Z"},
			"registered_at":"2026-01-02T03:04:05Z"}],"has_more":false}`,
		)
	})
	mux.HandleFunc("GET /v1/hubs/{hub}/devices", func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.Header().Set("Event-Cursor", cursor(len(b.events)))
		fmt.Fprint(
			w,
			`{"data":[{"id":1,"name":"Front door","room":null,"manufacturer":"Castellan",`+
				`"model":"Bolt 2","channels":[]}]}`,
		)
	})
	mux.HandleFunc("POST /v1/hubs/{hub}/devices/1/commands", b.command)
	mux.HandleFunc("GET /v1/hubs/{hub}/events", b.page)
	mux.HandleFunc("GET /v1/hubs/{hub}/events/stream", b.stream)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, client.ErrNotFound, "no such thing")
	})
	server := httptest.NewServer(mux)
	c, err := client.New(client.Config{BaseURL: server.URL + "/v1", APIKey: "hc_dev_example"})
	if err != nil {
		panic(err)
	}
	return c, b, func() { c.Close(); server.CloseClientConnections(); server.Close() }
}

func cursor(n int) string { return "c" + strconv.Itoa(n) }

func fail(w http.ResponseWriter, status int, kind client.ErrorType, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"type":%q,"message":%q,"request_id":"01J"}}`, kind, message)
}

// happens appends an event.
func (b *building) happens(kind, data string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.append(kind, data)
}

func (b *building) append(kind, data string) {
	b.events = append(
		b.events,
		fmt.Sprintf(
			`{"cursor":%q,"type":%q,"hub_id":"hub-7k2m-q4xd-93ta","device_id":1,`+
				`"time":"2026-01-02T03:04:05.000000Z","clock_trusted":true,"data":%s}`,
			cursor(len(b.events)+1), kind, data,
		),
	)
	close(b.more)
	b.more = make(chan struct{})
}

func (b *building) command(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Key   string
		Value bool
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Key != "lock" {
		fail(w, http.StatusBadRequest, client.ErrInvalidRequest, "value: lock takes true or false")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(
		w,
		`{"hub_id":"hub-7k2m-q4xd-93ta","device_id":1,"channel":{"key":"lock","endpoint":0,`+
			`"kind":"lock","unit":null,"available":true,"value":%t,
		"observed_at":"2026-01-02T03:04:05Z","desired":%t,"desired_at":"2026-01-02T03:04:06Z","status":"pending"}}`,
		b.locked,
		asked.Value,
	)
	if !b.jammed {
		b.locked = asked.Value
	}
	b.append("channel.desired", fmt.Sprintf(`{"key":"lock","endpoint":0,"value":%t}`, asked.Value))
	b.append("channel.observed", fmt.Sprintf(`{"key":"lock","endpoint":0,"value":%t}`, b.locked))
}

// after returns the events after a cursor.
func (b *building) after(position string) (events []string, last int, more chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from, _ := strconv.Atoi(strings.TrimPrefix(position, "c"))
	if position != "" && from < b.expired {
		return nil, 0, nil, false
	}
	return b.events[max(from, b.expired):], len(b.events), b.more, true
}

func (b *building) page(w http.ResponseWriter, r *http.Request) {
	events, last, _, ok := b.after(r.FormValue("after"))
	if !ok {
		fail(w, http.StatusGone, client.ErrCursorExpired, "the cursor is older than 24 hours")
		return
	}
	fmt.Fprintf(
		w, `{"data":[%s],"next_cursor":%q,"has_more":false}`, strings.Join(events, ","),
		cursor(last),
	)
}

func (b *building) stream(w http.ResponseWriter, r *http.Request) {
	position := r.Header.Get("Last-Event-ID")
	if position == "" {
		_, last, _, _ := b.after("")
		position = cursor(last)
	}
	for begun := false; ; begun = true {
		events, last, more, ok := b.after(position)
		if !ok {
			fail(w, http.StatusGone, client.ErrCursorExpired, "the cursor is older than 24 hours")
			return
		}
		if !begun {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: %s\n\n", position)
		}
		for i, event := range events {
			fmt.Fprintf(w, "id: %s\ndata: %s\n\n", cursor(last-len(events)+i+1), event)
		}
		w.(http.Flusher).Flush()
		position = cursor(last)
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}
