package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"
)

// State is what a channel of a device last reported.
type State struct {
	// ID identifies the item in the list.
	ID         string           `json:"id"`
	HubID      string           `json:"hub_id"`
	SiteID     string           `json:"site_id"`
	Connection ListedConnection `json:"connection"`
	Device     StateDevice      `json:"device"`
	Channel    Channel          `json:"channel"`
	// ChangedAt is when the device first reported the value; nil if it is not known.
	ChangedAt *time.Time `json:"changed_at"`
	// Basis is event or read.
	Basis string `json:"basis"`
	// Certain is false while the hub may have reported something else.
	Certain bool `json:"certain"`
}

// StateDevice is the device of a channel.
type StateDevice struct {
	ID int64 `json:"id"`
	// Name is nil if it is not known.
	Name         *string `json:"name"`
	Manufacturer string  `json:"manufacturer"`
	Model        string  `json:"model"`
	Room         *string `json:"room"`
	// AvailableSince is since when the hub can or cannot reach the device; nil if it is not known.
	AvailableSince *time.Time `json:"available_since"`
}

// StateFilter selects states. All fields that are set must match.
type StateFilter struct {
	SiteID, HubID, Key string
	// Value selects channels whose value is the boolean.
	Value     *bool
	Status    ChannelStatus
	Available *bool
	// ObservedBefore selects channels that have reported, but not at that time or later.
	ObservedBefore time.Time
}

// PastState is what the devices of a hub had last reported at an instant.
type PastState struct {
	HubID string    `json:"hub_id"`
	At    time.Time `json:"at"`
	// KnownFrom is the first instant at which more is known than what events tell; nil if there is
	// none yet.
	KnownFrom *time.Time `json:"known_from"`
	// Certain is false if the hub may have had other devices, or reported something else.
	Certain  bool          `json:"certain"`
	Channels []PastChannel `json:"data"`
}

// pastPage is an answer with some of the channels.
type pastPage struct {
	PastState
	HasMore           bool   `json:"has_more"`
	NextStartingAfter string `json:"next_starting_after"`
}

// PastChannel is what a channel of a device had last reported at an instant. The fields are those
// of a State.
type PastChannel struct {
	Device    StateDevice `json:"device"`
	Channel   Channel     `json:"channel"`
	ChangedAt *time.Time  `json:"changed_at"`
	Basis     string      `json:"basis"`
	Certain   bool        `json:"certain"`
}

// StateAt returns what the devices of a hub had last reported at an instant, as long ago as events
// are kept. Scope hubs:read.
func (c *Client) StateAt(ctx context.Context, hub string, at time.Time) (PastState, error) {
	query, next := parameters{"at": at}, ""
	var channels []PastChannel
	for {
		past, err := ask[pastPage](ctx, c,
			call{method: http.MethodGet, path: route("hubs", hub, "state"), query: query})
		if err != nil {
			return PastState{}, err
		}
		channels = append(channels, past.Channels...)
		past.Channels = channels
		switch {
		case !past.HasMore:
			return past.PastState, nil
		case past.NextStartingAfter == "" || past.NextStartingAfter == next:
			return PastState{}, fmt.Errorf("%w: a state with has_more does not advance", ErrProtocol)
		}
		next = past.NextStartingAfter
		query["starting_after"] = next
	}
}

func (f StateFilter) values() parameters {
	return parameters{
		"site_id": f.SiteID, "hub_id": f.HubID, "key": f.Key, "status": string(f.Status), "value": f.Value,
		"available": f.Available, "observed_before": f.ObservedBefore,
	}
}

// States lists the last reported states of the channels of all devices, also of hubs that are
// offline. Scope hubs:read.
func (c *Client) States(ctx context.Context, filter StateFilter) iter.Seq2[State, error] {
	return all(func(after string) (Page[State], error) {
		return c.StatesPage(ctx, filter, PageQuery{Limit: maxStates, StartingAfter: after})
	}, func(s State) string { return s.ID })
}

// StateSnapshot is a list of last reported states, and where the feed goes on from it.
type StateSnapshot struct {
	States []State
	// Position is the position of the organization's feed from which to follow (Client.Feed).
	// States and events together miss no change; the first events repeat the last seconds of what
	// States has.
	Position string
}

// SnapshotStates lists the last reported states of the channels of all devices, and the position
// from which to follow their changes. Scope hubs:read.
func (c *Client) SnapshotStates(ctx context.Context, filter StateFilter) (StateSnapshot, error) {
	var snapshot StateSnapshot
	for item, err := range all(func(after string) (Page[State], error) {
		p, position, err := c.statesPage(
			ctx, filter, PageQuery{Limit: maxStates, StartingAfter: after},
		)
		snapshot.Position = cmp.Or(snapshot.Position, position)
		return p, err
	}, func(s State) string { return s.ID }) {
		if err != nil {
			return StateSnapshot{}, err
		}
		snapshot.States = append(snapshot.States, item)
	}
	return snapshot, nil
}

// maxStates is the most items of a page of states.
const maxStates = 500

// StatesPage reads one page of the list of states, of up to 500 items, 100 by default. Scope
// hubs:read.
func (c *Client) StatesPage(
	ctx context.Context, filter StateFilter, query PageQuery,
) (Page[State], error) {
	p, _, err := c.statesPage(ctx, filter, query)
	return p, err
}

// statesPage also returns the position of the feed from before the page was read.
func (c *Client) statesPage(
	ctx context.Context, filter StateFilter, query PageQuery,
) (p Page[State], position string, err error) {
	values := filter.values().with(query.values())
	header, err := c.do(ctx, call{method: http.MethodGet, path: route("state"), query: values}, &p)
	return p, header.Get(cursorHeader), err
}
