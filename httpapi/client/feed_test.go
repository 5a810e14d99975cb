package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// feedFrames returns events of a feed's stream, written as position:hub/cursor.
func feedFrames(events string) string {
	var all strings.Builder
	for _, event := range strings.Fields(events) {
		position, identity, _ := strings.Cut(event, ":")
		all.WriteString("id: " + position + "\nevent: x\ndata: " + feedEnvelope(identity) + "\n\n")
	}
	return all.String()
}

func feedEnvelope(identity string) string {
	hub, cursor, _ := strings.Cut(identity, "/")
	return fmt.Sprintf(
		`{"cursor":%q,"type":"channel.observed","hub_id":%q,"device_id":null,`+
			`"time":"2026-01-02T03:04:05.120000Z","clock_trusted":null,"data":{},"new":1}`,
		cursor, hub,
	)
}

// feedPageOf returns a page of a feed, its events written as hub/cursor.
func feedPageOf(events, next string, more bool) step {
	var list []string
	for _, identity := range strings.Fields(events) {
		list = append(list, feedEnvelope(identity))
	}
	return answer(http.StatusOK, `{"data":[`+strings.Join(list, ",")+`],"next_cursor":"`+next+
		`","has_more":`+strconv.FormatBool(more)+`}`)
}

// followedFeed returns what a feed yields, written as position:hub/cursor.
func followedFeed(
	ctx context.Context, c *Client, after string, most int, options ...EventsOption,
) (string, error) {
	var all []string
	for event, err := range c.Feed(ctx, FeedFilter{}, after, options...) {
		if err != nil {
			return strings.Join(all, " "), err
		}
		all = append(all, event.Position+":"+event.HubID+"/"+event.Cursor)
		if len(all) == most {
			break
		}
	}
	return strings.Join(all, " "), nil
}

// The feed resumes at its own positions. Cursors of different hubs may be equal.
func TestFeedIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after   string
		options []EventsOption
		steps   []step
		want    string
		from    string
	}{
		"positions without event": {
			"p", nil, []step{
				events(nil, "id: q\n\n", feedFrames("r:a/1"), "id: s\n\n"),
				events(errSilent, feedFrames("t:a/2 u:a/3")),
			}, "r:a/1 t:a/2 u:a/3", "p s",
		},
		"history first": {
			"", nil, []step{
				feedPageOf("a/1 b/1", "q", true), events(errSilent, feedFrames("r:a/2")),
			}, ":a/1 q:b/1 r:a/2", "- q",
		},
		"a page of filtered events": {
			"p", []EventsOption{LongPoll()}, []step{
				feedPageOf("", "q", true), feedPageOf("a/1 a/2 b/1", "r", true),
			}, ":a/1 :a/2 r:b/1", "p q",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := playing(t, nil, tt.steps...)
			got, err := followedFeed(t.Context(), c, tt.after, 3, tt.options...)
			if err != nil || got != tt.want || positions(s) != tt.from {
				t.Errorf(
					"%s: got %q, %v, from %q, want %q, from %q", name, got, err, positions(s),
					tt.want, tt.from,
				)
			}
		})
	}
}

// Errors that retries do not help against end the feed.
func TestFeedEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step    step
		want    error
		options []EventsOption
	}{
		"410":              {apiError(410, ErrCursorExpired), ErrResync, nil},
		"event without id": {events(nil, "data: "+feedEnvelope("a/1")+"\n\n"), ErrProtocol, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := playing(t, nil, tt.step)
			if got, err := followedFeed(t.Context(), c, "p", 1, tt.options...); got != "" ||
				!errors.Is(err, tt.want) {
				t.Errorf("%s: got %q, %v, want %v", name, got, err, tt.want)
			}
		})
	}
}

// A feed.gap event is yielded with a GapError, and the feed continues.
func TestFeedGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gap := "id: q\nevent: feed.gap\ndata: " + strings.Replace(
			envelope("g", EventFeedGap, `{"hub_id":"hub-1","reason":"log_reset"}`), "\n", "", -1,
		) + "\n\n"
		c, _ := playing(t, nil, events(errSilent, gap, feedFrames("r:hub-1/1")))
		var gaps []*GapError
		for event, err := range c.Feed(t.Context(), FeedFilter{}, "p") {
			if lost, ok := errors.AsType[*GapError](err); ok {
				gaps = append(gaps, lost)
				continue
			}
			if err != nil || event.Position != "r" {
				t.Errorf("got %+v, %v, want the event after the gap", event, err)
			}
			break
		}
		if len(gaps) != 1 || gaps[0].Feed != (FeedGap{HubID: "hub-1", Reason: "log_reset"}) ||
			!strings.Contains(gaps[0].Error(), "hub-1 are gone: log_reset") {
			t.Errorf("got %+v, want one gap of hub-1, log_reset", gaps)
		}
	})
}

// Filters are sent with pages, streams and reconnects, but not where a position is asked for. A
// stream is asked for positions.
func TestFeedFilter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := playing(
			t, nil, feedPageOf("", "p", false), events(nil), events(errSilent, feedFrames("q:a/1")),
		)
		filter := FeedFilter{
			SiteIDs: []string{"s"}, HubIDs: []string{"a", "b"}, Types: []string{"channel.*"}, Part: 2, Parts: 8,
		}
		for range c.Feed(t.Context(), filter, "") {
			break
		}
		const filters = "hub_id=a&hub_id=b&part=2%2F8&{}site_id=s&type=channel.%2A"
		for i, path := range []string{"/v1/events", "/v1/events/stream", "/v1/events/stream"} {
			r, positions := s.seen()[i], "positions=true&"
			if i == 0 {
				positions = ""
			}
			want := strings.Replace(filters, "{}", positions, 1)
			if query := strings.ReplaceAll(r.query, "limit=500&", ""); r.path != path ||
				query != want {
				t.Errorf("request %d: got %s?%s, want %s?%s", i, r.path, query, path, want)
			}
		}
	})
}

// A page has its position at its last event. Raw and the JSON form keep what the service sent.
func TestFeedPage(t *testing.T) {
	t.Parallel()
	c, _ := playing(t, nil, feedPageOf("a/1 b/1", "q", true))
	page, err := c.FeedPage(t.Context(), FeedFilter{}, EventQuery{After: "p", Wait: time.Second})
	if err != nil || len(page.Data) != 2 || page.Data[0].Position != "" ||
		page.Data[1].Position != "q" || !page.HasMore {
		t.Fatalf("got %+v, %v, want two events and the position q", page, err)
	}
	if string(page.Data[1].Raw) != feedEnvelope("b/1") {
		t.Errorf("got %s, want %s", page.Data[1].Raw, feedEnvelope("b/1"))
	}
	text, err := json.Marshal(page.Data[1])
	if err != nil || !strings.HasSuffix(string(text), `"data":{},"position":"q"}`) {
		t.Errorf("got %s, %v, want the position at the end", text, err)
	}
}

// A feed that begins with states passes each on, goes on from the position after them, and begins
// them anew if the connection breaks before.
func TestFeedFromStates(t *testing.T) {
	t.Parallel()
	state := "event: snapshot.state\ndata: {\"cursor\":null,\"type\":\"snapshot.state\"," +
		`"hub_id":"hub-1","device_id":3,"time":"2026-01-02T03:04:05.000006Z","clock_trusted":null,` +
		`"data":` + stateJSON + "}\n\n"
	end := "id: p\nevent: snapshot.complete\ndata: {\"cursor\":\"p\",\"type\":" +
		"\"snapshot.complete\"}\n\n"
	var got []string
	option := FromStates(func(s State) { got = append(got, s.ID) })
	c, s := playing(
		t, nil, events(nil, state), events(nil, state, state, end, feedFrames("q:a/1")), broken,
		events(errSilent, feedFrames("r:a/2")),
	)
	all, err := followedFeed(t.Context(), c, "", 2, option)
	const id = "hub-1/3/2/color"
	if err != nil || all != "q:a/1 r:a/2" || strings.Join(got, " ") != id+" "+id+" "+id {
		t.Errorf("got %s, %v and the states %v, want three states, then a/1 and a/2", all, err, got)
	}
	for i, want := range []string{"snapshot=true", "snapshot=true", "", ""} {
		r := s.seen()[i]
		if strings.Contains(r.query, "snapshot=true") != (want != "") {
			t.Errorf("request %d: got the query %s, want %q in it", i, r.query, want)
		}
	}
}
