package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// dashboard shows the values of an organization's channels. It is made from the list of states, and
// from the feed after the list's Event-Cursor alone.
type dashboard struct {
	tenant   *harness.Tenant
	position string
	// values are by the ids of states, without those that the list did not call certain.
	values map[string]string
	// doubts are the hubs of which the feed says that the list must be read again.
	doubts map[string]bool
}

// newDashboard lists the states, once the service answers.
func newDashboard(t *testing.T, tenant *harness.Tenant) *dashboard {
	t.Helper()
	d := &dashboard{tenant: tenant, values: map[string]string{}, doubts: map[string]bool{}}
	streamstest.Eventually(t, "states are listed", func() bool {
		all, position, ok := shownStates(tenant)
		for _, s := range all {
			if s.Certain {
				d.values[s.ID] = string(s.Channel.Value)
			}
		}
		d.position = position
		return ok
	})
	return d
}

// follow applies the events up to the end of the feed.
func (d *dashboard) follow(t *testing.T) {
	t.Helper()
	streamstest.Eventually(t, "the feed is read to its end", func() bool {
		answer, err := d.tenant.Client.Do(
			http.MethodGet, "/events?limit=500&after="+url.QueryEscape(d.position), nil,
		)
		var page harness.Page
		if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &page) != nil {
			return false
		}
		for _, e := range page.Data {
			d.apply(e)
		}
		d.position = page.NextCursor
		return !page.HasMore
	})
}

// apply applies an event.
func (d *dashboard) apply(e harness.Event) {
	switch {
	case e.Type == "channel.observed":
		data := e.Observed()
		id := fmt.Sprintf("%s/%d/%d/%s", e.HubID, *e.DeviceID, data.Endpoint, data.Key)
		if _, known := d.values[id]; known {
			d.values[id] = string(data.Value)
		}
	case e.Type == "hub.events_skipped", e.Type == "hub.log_reset", e.Type == "feed.gap",
		strings.HasPrefix(e.Type, "device."):
		d.doubts[e.HubID] = true
	}
}

// differences describes the values that are not those of the hubs and not in doubt.
func (d *dashboard) differences(t *testing.T, hubs []*virtualhub.Hub) string {
	t.Helper()
	var all []string
	for _, hub := range hubs {
		if d.doubts[hub.ID()] {
			continue
		}
		for id, text := range channelsOf(t, hub) {
			want, _, _ := strings.Cut(text, ", desired ")
			if got, known := d.values[id]; known && got != want {
				all = append(all, fmt.Sprintf("%s is %s, want %s", id, got, want))
			}
		}
	}
	return strings.Join(all, "; ")
}
