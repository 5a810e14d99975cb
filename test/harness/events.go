package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Event is an event as the API gives it.
type Event struct {
	Cursor       string          `json:"cursor"`
	Type         string          `json:"type"`
	HubID        string          `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// About says whether the event is of a type and about a device.
func (e Event) About(eventType string, device int64) bool {
	return e.Type == eventType && e.DeviceID != nil && *e.DeviceID == device
}

// Observed is the data of channel.observed and channel.desired.
type Observed struct {
	Key      string          `json:"key"`
	Endpoint int64           `json:"endpoint"`
	Value    json.RawMessage `json:"value"`
}

// Observed reads the event's data as that of a channel's event; what is none gives the zero
// Observed.
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

// Events reads one page.
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

// AllEvents reads a hub's log from a cursor (empty: from the oldest event) to its end.
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

// Head is the cursor of the end of a hub's log: what comes after it is new. Of a hub that sends
// faster than it is read, it is where the log was read to within ten seconds.
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

// Await long-polls a hub's log from a cursor on until an event is the one that is waited for, and
// gives it. It fails the test when that does not come within a minute.
func (c *Client) Await(hub, after, what string, is func(Event) bool) Event {
	c.T.Helper()
	deadline := time.Now().Add(time.Minute)
	var seen []Event
	for time.Now().Before(deadline) {
		page := c.Events(hub, after, 500, 1)
		for _, event := range page.Data {
			if is(event) {
				return event
			}
		}
		seen = append(seen, page.Data...)
		after = page.NextCursor
	}
	c.T.Fatalf("hub %s: no event within a minute: %s; what came: %s", hub, what, Told(seen))
	return Event{}
}

// Told writes events for a failure's message.
func Told(events []Event) string {
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
