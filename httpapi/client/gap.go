package client

import (
	"errors"
	"fmt"
)

// GapError comes with the events hub.events_skipped and hub.log_reset, and in the organization's
// feed with feed.gap too: events of the hub may be missing. The sequence continues; a program that
// keeps the state of devices must read them again.
type GapError struct {
	// Event is the event that marks the gap.
	Event Event
	// Skipped is the range of missing events of hub.events_skipped, by the hub's numbers.
	Skipped EventsSkipped
	// Reset is the data of hub.log_reset.
	Reset LogReset
	// Feed is the data of feed.gap.
	Feed FeedGap
}

// FeedGap is the data of feed.gap: events of a hub are gone for this reader of the feed.
type FeedGap struct {
	HubID  string `json:"hub_id"`
	Reason string `json:"reason"`
}

// Error describes the missing events.
func (g *GapError) Error() string {
	switch g.Event.Type {
	case EventFeedGap:
		return fmt.Sprintf("events of hub %s are gone: %s", g.Event.HubID, g.Feed.Reason)
	case EventHubLogReset:
		return fmt.Sprintf("the log of hub %s has begun anew: %s", g.Event.HubID, g.Reset.Reason)
	}
	return fmt.Sprintf(
		"events %d to %d of hub %s could not be delivered", g.Skipped.From, g.Skipped.To,
		g.Event.HubID,
	)
}

// IsGap reports whether err is a GapError, after which the sequence of events continues.
func IsGap(err error) bool {
	_, ok := errors.AsType[*GapError](err)
	return ok
}

// gapOf returns the GapError of an event that marks a gap, and nil for other events. The second
// error means that the data cannot be decoded.
func gapOf(event Event) (beside, failed error) {
	gap := &GapError{Event: event}
	switch event.Type {
	case EventHubEventsSkipped:
		return gap, event.Decode(&gap.Skipped)
	case EventHubLogReset:
		return gap, event.Decode(&gap.Reset)
	case EventFeedGap:
		return gap, event.Decode(&gap.Feed)
	}
	return nil, nil
}
