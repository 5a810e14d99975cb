package feed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// cloudEvent returns an event that the cloud writes.
func cloudEvent(kind, data string) journal.Record {
	return journal.Record{
		Payload: fmt.Appendf(nil, `{"type":%q,"hub_id":%q,"data":%s}`, kind, hubA, data),
		EpochID: domain.NewEpochID(0xa), Kind: journal.KindCloudEvent, Connection: "c",
	}
}

// Disconnections finds the ends of a hub's connections between other events of the cloud and events
// of the hub.
func TestDisconnectionsAreFound(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 5)
	for n, reason := range []string{`"read error"`, `null`, `"duplicate client id"`} {
		records := []journal.Record{
			cloudEvent(domain.EventHubConnected, `{}`),
			cloudEvent(domain.EventHubEventsSkipped, `{"from":1,"to":2}`),
			cloudEvent(domain.EventHubDisconnected, `{"reason":`+reason+`}`),
		}
		var err error
		if last, err = f.Append(t.Context(), hubA, last, records); err != nil {
			t.Fatal(err)
		}
		last = f.append(hubA, last, 6+n, 1)
	}
	check := func(what string, hub domain.HubID, since time.Time, limit int, want ...string) {
		t.Helper()
		ends, err := f.Disconnections(t.Context(), hub, since, limit)
		var got []string
		for _, end := range ends {
			got = append(got, end.Reason)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Disconnections %s: got %q, %v, want %q", what, got, err, want)
		}
	}
	check("in all", hubA, begun.Add(-time.Minute), 500, "read error", "", "duplicate client id")
	check("up to a limit", hubA, begun.Add(-time.Minute), 2, "read error", "")
	check("since a later time", hubA, time.Now().Add(time.Minute), 500)
	check("of a hub without a log", "hub-none-none-none", begun, 500)
}
