package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/httpapi/sse"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/logwriter/logwritertest"
	"hubcloud/streams/streamstest"
)

const hub = domain.HubID("hub-7k2m-q4xd-93ta")

// oneTenant is an organization with one key and one hub.
type oneTenant struct{ key domain.Key }

func (o oneTenant) Key(id string) (domain.KeyAccess, bool) {
	return domain.KeyAccess{
		ID: o.key.ID, OrgID: "org", Environment: o.key.Environment, Scopes: domain.AllScopes(),
		SecretHash: o.key.SecretHash(),
	}, id == o.key.ID
}

func (o oneTenant) Hub(id domain.HubID) (domain.HubAccess, bool) {
	return domain.HubAccess{OrgID: "org", Epoch: domain.Epoch{ID: domain.NewEpochID(1)}}, id == hub
}

// logs adapts feed.Logs to Events.
type logs struct{ *feed.Logs }

func (l logs) Follow(
	ctx context.Context, hub domain.HubID, after string,
) (httpapi.EventReader, error) {
	return l.Logs.Follow(ctx, hub, after)
}

// A real log is read page by page, by long-poll, and as a stream from the middle while events are
// being stored. Each way has the same events with the same cursors.
func TestRealLog(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	journals, _ := logwritertest.Open(t, conns, time.Hour)
	store, err := feed.New(conns, feed.Config{
		Journal:   journals,
		Retention: time.Hour,
		Epoch: func(domain.HubID) (domain.Epoch, bool) {
			return domain.Epoch{
				ID: domain.NewEpochID(1),
			}, true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	var last uint64
	appendEvents := func(n int) {
		t.Helper()
		records := make([]journal.Record, n)
		for i := range records {
			records[i].Kind, records[i].EpochID, records[i].OwnLog = journal.KindHubEvent, domain.NewEpochID(1), "a"
			records[i].Through = last + uint64(i) + 1
			records[i].Payload = fmt.Appendf(
				nil,
				`{"type":"channel.observed","hub_id":%q,"device_id":1,`+
					`"time":"2026-01-02T03:04:05.000000Z",`+
					`"clock_trusted":true,"data":{"key":"level","endpoint":0,"value":%d}}`,
				hub,
				last+uint64(i)+1,
			)
		}
		if last, err = store.Append(t.Context(), hub, last, records); err != nil {
			t.Fatal(err)
		}
	}
	appendEvents(200)
	appendEvents(50)

	tenant := oneTenant{domain.NewKey(domain.EnvironmentLive, [domain.KeyEntropy]byte{1})}
	api, err := httpapi.New(httpapi.Config{
		Keys: tenant, Hubs: tenant, Events: logs{store}, Environment: domain.EnvironmentLive,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	get := func(path string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(
			t.Context(), "GET", server.URL+"/v1/hubs/"+string(hub)+"/events"+path, nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tenant.key.Reveal())
		if len(headers) == 2 {
			req.Header.Set(headers[0], headers[1])
		}
		res, err := server.Client().Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %v, %v, want 200", path, res, err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}

	type event struct {
		Cursor string
		Data   struct{ Value int }
	}
	type page struct {
		Data       []event
		NextCursor string `json:"next_cursor"`
		HasMore    bool   `json:"has_more"`
	}
	read := func(path string) (p page) {
		t.Helper()
		body, err := io.ReadAll(get(path).Body)
		if err == nil {
			err = json.Unmarshal(body, &p)
		}
		if err != nil || p.NextCursor == "" {
			t.Fatalf("%s: got %s, %v, want a page with a cursor", path, body, err)
		}
		return p
	}
	var events []event
	for after, more := "", true; more; {
		p := read("?limit=60" + after)
		events = append(events, p.Data...)
		after, more = "&after="+p.NextCursor, p.HasMore
	}
	if len(events) != 250 || events[0].Data.Value != 1 || events[249].Data.Value != 250 {
		t.Fatalf("got %d events in pages, want 1 to 250", len(events))
	}

	stream := bufio.NewScanner(get("/stream", "Last-Event-ID", events[99].Cursor).Body)
	held := make(chan page)
	go func() { held <- read("?wait=30&after=" + events[249].Cursor) }()
	for range 10 {
		appendEvents(5)
	}
	waited := <-held
	if len(waited.Data) == 0 || waited.Data[0].Data.Value != 251 {
		t.Errorf("long-poll: got %v, want event 251", waited)
	}
	events = append(events, read("?after="+events[249].Cursor).Data...)
	want, id := 101, ""
	for want <= 300 && stream.Scan() {
		line := stream.Text()
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			id = rest
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Data.Value != want ||
			e.Cursor != id ||
			e.Cursor != events[want-1].Cursor {
			t.Fatalf("event %d is %s with id %s: %v", want, data, id, err)
		}
		want++
	}
	if want != 301 {
		t.Errorf("the stream ended before event %d: %v", want, stream.Err())
	}
}

// TestReadFitsIntoWrite reads a log of large events: one read must not return more bytes than a
// stream sends at once, which bounds the memory of a client that stopped reading.
func TestReadFitsIntoWrite(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	journals, _ := logwritertest.Open(t, conns, time.Hour)
	store, err := feed.New(conns, feed.Config{
		Journal:   journals,
		Retention: time.Hour,
		Epoch: func(domain.HubID) (domain.Epoch, bool) {
			return domain.Epoch{ID: domain.NewEpochID(1)}, true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	const count = 50
	records := make([]journal.Record, count)
	for i := range records {
		records[i].Kind, records[i].EpochID = journal.KindHubEvent, domain.NewEpochID(1)
		records[i].Payload = fmt.Appendf(nil, `{"type":"x","data":%q}`, strings.Repeat("x", 3000))
	}
	if _, err := store.Append(t.Context(), hub, 0, records); err != nil {
		t.Fatal(err)
	}
	page, err := store.Page(t.Context(), hub, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := store.Follow(t.Context(), hub, page.Next)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for read := 1; read < count; {
		events, err := reader.Next(t.Context(), count)
		if err != nil || len(events) == 0 {
			t.Fatalf(
				"Next: got %d events, %v after event %d of %d, want events", len(events), err, read,
				count,
			)
		}
		read += len(events)
		bytes := 0
		for _, e := range events {
			bytes += len(e.Envelope)
		}
		if bytes > sse.BatchBytes {
			t.Errorf("Next returned %d bytes of events, want at most %d", bytes, sse.BatchBytes)
		}
	}
}
