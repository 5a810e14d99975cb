package client

import (
	"cmp"
	"net/http"
	"time"
)

// source is an ordered sequence of events that the service pages and streams: the log of a hub, the
// feed of the organization, or its audit log.
type source struct {
	// path is the path of the pages. The stream's is path and /stream.
	path string
	// filter is sent with every request.
	filter parameters
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
	values := s.filter.with(parameters{
		"after": query.After, "since": query.Since, "last": query.Last, "limit": query.Limit,
		"wait": int(query.Wait / time.Second),
	})
	return call{
		method: http.MethodGet, path: s.path, query: values, held: query.Wait,
		reader: cmp.Or(query.Reader, s.reader),
	}
}

// streamCall returns the call of a stream with positions, so that no event falls between two
// connections to a quiet source.
func (s source) streamCall(caughtUp, states bool) call {
	values := s.filter.with(parameters{"positions": true, "caught_up": caughtUp, "snapshot": states})
	return call{method: http.MethodGet, path: s.path + "/stream", query: values, reader: s.reader}
}
