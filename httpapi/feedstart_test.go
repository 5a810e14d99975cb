package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

// Pages and streams begin where the request says; beginnings that contradict each other are
// rejected.
func TestFeedStart(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.emit(9, 0)
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for query, want := range map[string]string{
		"since=2026-01-01T00:00:00Z": "c0",
		"since=2026-01-03T00:00:00Z": "c9",
		"last=4":                     "c5",
		"last=500":                   "c0",

		"last=0":                          "400 last: must be an integer from 1 to 500",
		"since=yesterday":                 "400 since: must be a timestamp",
		"since=" + future:                 "400 since: must not be in the future",
		"after=c1&last=3":                 "400 last: cannot be combined with after",
		"after=c1&since=2026-01-01":       "400 since: cannot be combined with after",
		"since=2026-01-01T00:00:00Z&last": "400 last: must have a value",
	} {
		for _, path := range []string{"/v1/hubs/" + string(hubOne) + "/events", "/v1/events"} {
			if why, bad := strings.CutPrefix(want, "400 "); bad {
				for _, target := range []string{path + "?", path + "/stream?"} {
					a := s.do("GET", target+query, "")
					wantError(t, a, 400, domain.CodeInvalidRequest)
					if !strings.Contains(a.body, why) {
						t.Errorf("GET %s%s: got %s, want %s", target, query, a.body, why)
					}
				}
				continue
			}
			// The default limit is at least as large as last.
			page := s.do("GET", path+"?"+query, "")
			var n int
			fmt.Sscanf(want, "c%d", &n)
			if got := strings.Count(page.body, `"cursor"`); page.StatusCode != 200 || got != 9-n {
				t.Errorf("GET %s?%s: got %d, %d events, want %d", path, query, page.StatusCode, got, 9-n)
			}
			o := s.streamAt(path + "/stream?positions=true&" + query)
			o.expect("id: " + want + "\n\n")
			o.stop()
			o = s.streamAt(path+"/stream?positions=true&"+query, "Last-Event-Id", "c7")
			o.expect("id: c7\n\n")
			o.stop()
		}
	}
}

// A stream tells once that the client has what was stored when it connected.
func TestStreamCaughtUp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.emit(2, 0)
	o := s.streamAt(streamPath + "?caught_up=true&after=c0")
	o.expect(string(encodedEvent(1, 0).Frame))
	o.expect(string(encodedEvent(2, 0).Frame))
	mark := o.block()
	for _, want := range []string{
		"id: c2\nevent: stream.caught_up\ndata: {", `"cursor":"c2"`, `"hub_id":"` + string(hubOne),
	} {
		if !strings.Contains(mark, want) {
			t.Errorf("got %q, want %q in it", mark, want)
		}
	}
	s.emit(1, 0)
	o.expect(string(encodedEvent(3, 0).Frame))
}

// pagedStates are five states of two hubs, on pages of two.
type pagedStates struct{ ReadModels }

func (pagedStates) States(
	_ context.Context, _ domain.Reach, filter domain.StateFilter, _ int, after domain.StatePosition,
) (page domain.StatesPage, _ error) {
	for id := after.DeviceID + 1; id <= 5 && len(page.Data) < 2; id++ {
		hub := hubOne
		if id%2 == 0 {
			hub = hubTwo
		}
		if filter.HubID == nil || *filter.HubID == hub {
			page.Data = append(page.Data, domain.ReportedState{HubID: hub, SiteID: siteOne, DeviceID: id})
		}
		page.Next.DeviceID = id
	}
	page.HasMore = page.Next.DeviceID < 5
	return page, nil
}

// A stream with a snapshot has all states, without ids, then a mark with the position from before
// them, then the events after it.
func TestStreamSnapshot(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) {
		c.ReadModels, c.OrgEvents = pagedStates{c.ReadModels}, snapshotFeed{c.OrgEvents}
	})
	s.emit(3, 0)
	for query, want := range map[string]string{
		"":                          "1 2 3 4 5",
		"&hub_id=" + string(hubTwo): "2 4",
		"&site_id=" + siteOne:       "1 2 3 4 5",
		"&site_id=none":             "",
		"&type=none":                "1 2 3 4 5",
	} {
		o := s.streamAt("/v1/events/stream?snapshot=true&caught_up=true" + query)
		var got []string
		for {
			id, event, data := o.message()
			if event != "snapshot.state" {
				if id != "c1" || event != "snapshot.complete" {
					t.Errorf("%s: got %s %s after the states, want c1 snapshot.complete", query, id, event)
				}
				break
			}
			if id != "" || data.Cursor != "" {
				t.Errorf("%s: a state has id %q, cursor %q, want none", query, id, data.Cursor)
			}
			got = append(got, fmt.Sprint(data.DeviceID))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got states %s, want %s", query, got, want)
		}
		for _, want := range []string{
			"c2 channel.observed", "c3 channel.observed", "c3 stream.caught_up",
		} {
			id, event, _ := o.message()
			if got := id + " " + event; got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
		}
		o.stop()
	}
	o := s.streamAt("/v1/events/stream?snapshot=true", "Last-Event-Id", "c2")
	if id, _, _ := o.message(); id != "c3" {
		t.Errorf("a client that reconnects got %s first, want c3", id)
	}
	a := s.do("GET", "/v1/events/stream?snapshot=true&last=2", "")
	wantError(t, a, 400, domain.CodeInvalidRequest)
}

// snapshotFeed has a position of states.
type snapshotFeed struct{ OrgEvents }

func (snapshotFeed) StatesPosition(context.Context, string) (string, error) { return "c1", nil }

// message reads a message.
func (o *openStream) message() (id, event string, data struct {
	Cursor   string
	DeviceID int64 `json:"device_id"`
}) {
	o.t.Helper()
	for line := range strings.Lines(o.block()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &data); err != nil {
				o.t.Fatalf("data %q: %v", value, err)
			}
		}
	}
	return id, event, data
}
