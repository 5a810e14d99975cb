package client

import (
	"context"
	"time"
)

// Condition is something that needs attention.
type Condition struct {
	// ID identifies the condition as long as it holds.
	ID string `json:"id"`
	// Kind is what is wrong, such as smoke, jammed, battery or hub_offline.
	Kind string `json:"kind"`
	// Severity is alarm or warning.
	Severity string `json:"severity"`
	// Title is the condition in a few words of English.
	Title  string `json:"title"`
	HubID  string `json:"hub_id"`
	SiteID string `json:"site_id"`
	// DeviceID, DeviceName and Room are nil for a condition of a hub.
	DeviceID   *int64  `json:"device_id"`
	DeviceName *string `json:"device_name"`
	Room       *string `json:"room"`
	// Key, Endpoint, Value and Desired are those of a channel; nil for other conditions.
	Key      *string `json:"key"`
	Endpoint *int64  `json:"endpoint"`
	Value    Value   `json:"value"`
	Desired  Value   `json:"desired"`
	// Event is what a channel reports that has alarms in words.
	Event *string `json:"event"`
	// Since is when the condition began; nil if it is not known.
	Since *time.Time `json:"since"`
	// SeenAt is when a member marked it as seen; nil if nobody has.
	SeenAt *time.Time `json:"seen_at"`
}

// AttentionFilter selects conditions. All fields that are set must match.
type AttentionFilter struct {
	SiteID, HubID string
	// Limit is the most conditions, up to 1,000; 0 for 100.
	Limit int
}

// Attention lists what needs attention, the most urgent first: what the portal shows. If HasMore is
// set, ask site by site. Scope hubs:read.
func (c *Client) Attention(ctx context.Context, filter AttentionFilter) (Page[Condition], error) {
	return page[Condition](ctx, c, route("attention"), parameters{
		"site_id": filter.SiteID, "hub_id": filter.HubID, "limit": filter.Limit,
	})
}
