package faults

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// adopted returns a hub that has sent hello with an empty log and belongs to the tenant.
func adopted(t *testing.T, s *harness.Service, tenant *harness.Tenant) *harness.RawHub {
	t.Helper()
	hub := harness.NewRawHub(t, s)
	hub.Enroll()
	hub.Connect()
	hub.Hello("log-1", 1, 0)
	hub.WaitAck("log-1", 0)
	tenant.Add(hub.Serial)
	return hub
}

// values summarizes events: the value of each channel.observed, the range of each
// hub.events_skipped, otherwise the type.
func values(events []harness.Event) []string {
	var all []string
	for _, e := range events {
		switch e.Type {
		case "channel.observed":
			var data struct{ Value json.Number }
			_ = json.Unmarshal(e.Data, &data)
			all = append(all, data.Value.String())
		case "hub.events_skipped":
			var data struct{ From, To uint64 }
			_ = json.Unmarshal(e.Data, &data)
			all = append(all, fmt.Sprintf("skip %d-%d", data.From, data.To))
		default:
			all = append(all, e.Type)
		}
	}
	return all
}

// expect checks the values of a log's events.
func expect(t *testing.T, got []harness.Event, want ...string) {
	t.Helper()
	if a, b := strings.Join(values(got), ", "), strings.Join(want, ", "); a != b {
		t.Errorf("log: got\n%s\nwant\n%s", a, b)
	}
}
