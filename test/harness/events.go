package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Event is an event of the API.
type Event struct {
	Cursor       string          `json:"cursor"`
	Type         string          `json:"type"`
	HubID        string          `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// About reports whether the event has the type and the device.
func (e Event) About(eventType string, device int64) bool {
	return e.Type == eventType && e.DeviceID != nil && *e.DeviceID == device
}

// Observed is the data of channel.observed and channel.desired.
type Observed struct {
	Key      string          `json:"key"`
	Endpoint int64           `json:"endpoint"`
	Value    json.RawMessage `json:"value"`
}

// Observed decodes the event's data as a channel's event has it. It returns the zero Observed for
// any other data.
func (e Event) Observed() Observed {
	var data Observed
	if json.Unmarshal(e.Data, &data) != nil {
		return Observed{}
	}
	return data
}

// Page is a page of events.
type Page struct {
	Data       []Event `json:"data"`
	NextCursor string  `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
}

// Events reads one page. It waits up to wait seconds for the first event.
func (c *Client) Events(hub, after string, limit int, wait int) Page {
	c.T.Helper()
	path := fmt.Sprintf("/hubs/%s/events?limit=%d&wait=%d", hub, limit, wait)
	if after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	var page Page
	c.Must(http.MethodGet, path, nil, http.StatusOK).JSON(c.T, &page)
	return page
}

// AllEvents reads a hub's log from a cursor to its end. An empty cursor means the oldest event.
func (c *Client) AllEvents(hub, after string) []Event {
	c.T.Helper()
	var all []Event
	for {
		page := c.Events(hub, after, 500, 0)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		after = page.NextCursor
	}
}

// Head returns the cursor of the end of a hub's log. If the hub sends faster than Head reads, Head
// returns the position it reached within ten seconds.
func (c *Client) Head(hub string) string {
	c.T.Helper()
	after, deadline := "", time.Now().Add(10*time.Second)
	for {
		page := c.Events(hub, after, 500, 0)
		after = page.NextCursor
		if !page.HasMore || time.Now().After(deadline) {
			return after
		}
	}
}

// Await long-polls a hub's log from a cursor and returns the first event that match accepts. It
// fails the test after five minutes without one.
func (c *Client) Await(hub, after, what string, match func(Event) bool) Event {
	c.T.Helper()
	deadline := time.Now().Add(patience)
	var seen []Event
	for time.Now().Before(deadline) {
		page := c.Events(hub, after, 500, 1)
		for _, event := range page.Data {
			if match(event) {
				return event
			}
		}
		seen = append(seen, page.Data...)
		after = page.NextCursor
	}
	c.T.Fatalf(
		"hub %s: no event within %s, want one: %s; got %s", hub, patience, what, FormatEvents(seen),
	)
	return Event{}
}

// AwaitType is Await of the first event of a type, about a device if one is named.
func (c *Client) AwaitType(hub, after, eventType string, device ...int64) Event {
	c.T.Helper()
	return c.Await(hub, after, eventType, func(e Event) bool {
		return e.Type == eventType && (len(device) == 0 || e.About(eventType, device[0]))
	})
}

// FormatEvents formats events for a failure message, one a line.
func FormatEvents(events []Event) string {
	text := ""
	for _, e := range events {
		device := "-"
		if e.DeviceID != nil {
			device = fmt.Sprint(*e.DeviceID)
		}
		text += fmt.Sprintf("\n  %s device %s %s", e.Type, device, e.Data)
	}
	return text
}
