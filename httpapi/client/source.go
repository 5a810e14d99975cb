package client

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// source is an ordered sequence of events that the service pages and streams: the log of a hub, the
// feed of the organization, or its audit log.
type source struct {
	// path is the path of the pages. The stream's is path and /stream.
	path string
	// filter is sent with every request.
	filter url.Values
	// isFeed reports that positions are the feed's; the others have the cursors of
	// their events.
	isFeed bool
	// hubLog reports that it is the log of a hub, which has no filter.
	hubLog bool
	// reader is the name that the reader gives itself; "" for none.
	reader string
}

func hubSource(hubID string) source {
	return source{path: route("hubs", hubID, "events"), hubLog: true}
}

// identity returns a string that only this event of the source has.
func (s source) identity(event Event) string {
	if s.isFeed {
		return event.HubID + "/" + event.Cursor
	}
	return event.Cursor
}

func (s source) pageCall(query EventQuery) call {
	values := s.query()
	if query.After != "" {
		values.Set("after", query.After)
	}
	if !query.Since.IsZero() {
		values.Set("since", query.Since.UTC().Format(time.RFC3339Nano))
	}
	if query.Last != 0 {
		values.Set("last", strconv.Itoa(query.Last))
	}
	if query.Limit != 0 {
		values.Set("limit", strconv.Itoa(query.Limit))
	}
	if query.Wait != 0 {
		values.Set("wait", strconv.Itoa(int(query.Wait/time.Second)))
	}
	return call{
		method: http.MethodGet, path: s.path, query: values, held: query.Wait,
		reader: cmp.Or(query.Reader, s.reader),
	}
}

// streamCall returns the call of a stream with positions, so that no event falls between two
// connections to a quiet source.
func (s source) streamCall(caughtUp, states bool) call {
	values := s.query()
	values.Set("positions", "true")
	if caughtUp {
		values.Set("caught_up", "true")
	}
	if states {
		values.Set("snapshot", "true")
	}
	return call{method: http.MethodGet, path: s.path + "/stream", query: values, reader: s.reader}
}

// query returns a copy of the filter.
func (s source) query() url.Values {
	values := url.Values{}
	for name, all := range s.filter {
		values[name] = all
	}
	return values
}
