package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// EventFeedGap is the type of an event of the organization's feed only: events of a hub are gone
// for this reader. Its data is a FeedGap, and Client.Feed yields it with a GapError.
const EventFeedGap EventType = "feed.gap"

// FeedEvent is an event of the organization's feed.
type FeedEvent struct {
	// Event has the cursor in its hub's log, as in Client.Events.
	Event
	// Position is the feed's position after the event, to resume from. It is empty for an event
	// that is not the last of its page: resume from an earlier position then.
	Position string
	// Raw is the event as the service sent it, in JSON.
	Raw json.RawMessage
}

// UnmarshalJSON decodes an event without position.
func (e *FeedEvent) UnmarshalJSON(text []byte) error {
	*e = FeedEvent{Raw: bytes.Clone(text)}
	return json.Unmarshal(text, &e.Event)
}

// MarshalJSON encodes the event as the service does, and its position as an additional last member.
func (e FeedEvent) MarshalJSON() ([]byte, error) {
	text, err := e.Event.MarshalJSON()
	if err != nil || e.Position == "" {
		return text, err
	}
	position, err := json.Marshal(e.Position)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"position":`...)
	return append(append(text, position...), '}'), nil
}

// FeedFilter selects events of the organization's feed. The zero value selects all. A filter is no
// part of a position: it may change from one request to the next.
type FeedFilter struct {
	// SiteIDs selects the hubs at these sites.
	SiteIDs []string
	// HubIDs selects hubs.
	HubIDs []string
	// Types selects types of events, such as channel.observed, or prefixes, such as channel.*.
	Types []string
	// Part and Parts divide the hubs among Parts readers, of which this one is Part, from 1. Both
	// are 0 for a reader of all hubs.
	Part, Parts int
}

// source returns the feed with the filter.
func (f FeedFilter) source() source {
	values := parameters{"site_id": f.SiteIDs, "hub_id": f.HubIDs, "type": f.Types}
	if f.Part != 0 || f.Parts != 0 {
		values["part"] = fmt.Sprintf("%d/%d", f.Part, f.Parts)
	}
	return source{path: "/events", filter: values, isFeed: true}
}

// FeedPage is one page of the organization's feed.
type FeedPage struct {
	Data []FeedEvent `json:"data"`
	// NextCursor is the position to continue from, even if there are no events.
	NextCursor string `json:"next_cursor"`
	// HasMore reports that more events are stored.
	HasMore bool `json:"has_more"`
	// Lag is how far NextCursor is behind.
	Lag Lag `json:"-"`
}

// FeedPage reads one page of the events of all hubs of the organization. Scope events:read. Returns
// ErrInvalidRequest for a malformed position or filter, and ErrCursorExpired. Client.Feed reads,
// waits and resumes by itself.
func (c *Client) FeedPage(
	ctx context.Context, filter FeedFilter, query EventQuery,
) (FeedPage, error) {
	var p FeedPage
	header, err := c.do(ctx, filter.source().pageCall(query), &p)
	p.Lag = lagOf(header)
	if n := len(p.Data); n > 0 {
		p.Data[n-1].Position = p.NextCursor
	}
	return p, err
}

// Feed yields the events of all hubs of the organization after a position, and continues with new
// ones until ctx ends or the loop is left. It reads, resumes and ends as Client.Events does, and
// takes the same options. Each hub's events are in the order of its log; there is no order across
// hubs. after is the Position of the last processed event; "" starts at the oldest stored event, or
// with FromNow at the next new one. Scope events:read.
//
// A program that processes hubs in parallel stores a position once all events before it have been
// processed. OnPosition reports positions that are not an event's: with a filter, the position
// moves on past what was filtered out.
//
// Besides hub.events_skipped and hub.log_reset, feed.gap comes with a *GapError: events of that hub
// are gone for this reader, and the feed continues. ErrResync ends the sequence once the position
// as a whole is older than the retention.
func (c *Client) Feed(
	ctx context.Context, filter FeedFilter, after string, options ...EventsOption,
) iter.Seq2[FeedEvent, error] {
	o := optionsOf(options)
	return func(yield func(FeedEvent, error) bool) {
		c.follow(ctx, filter.source(), after, o, yield)
	}
}

// FeedPosition returns the newest position of the organization's feed: events after the call are
// after the position, events before the call are not. Scope events:read.
func (c *Client) FeedPosition(ctx context.Context) (string, error) {
	return c.positionOf(ctx, FeedFilter{}.source())
}
