package feed

import (
	"encoding/json"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// cloudEvent returns an event that the cloud writes.
func cloudEvent(t *testing.T, kind, data string) journal.Record {
	t.Helper()
	payload, err := json.Marshal(
		domain.HubEvent{
			Type:  kind,
			HubID: hubA,
			Time:  domain.FormatTime(time.Now()),
			Data:  json.RawMessage(data),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Record{
		Payload:    payload,
		EpochID:    domain.NewEpochID(0xa),
		Kind:       journal.KindCloudEvent,
		Connection: "c",
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
			cloudEvent(t, domain.EventHubConnected, `{}`),
			cloudEvent(t, domain.EventHubEventsSkipped, `{"from":1,"to":2}`),
			cloudEvent(t, domain.EventHubDisconnected, `{"reason":`+reason+`}`),
		}
		var err error
		if last, err = f.Append(t.Context(), hubA, last, records); err != nil {
			t.Fatal(err)
		}
		last = f.append(hubA, last, 6+n, 1)
	}
	ends, err := f.Disconnections(t.Context(), hubA, begun.Add(-time.Minute), 500)
	if err != nil || len(ends) != 3 || ends[0].Reason != "read error" || ends[1].Reason != "" ||
		ends[2].Reason != "duplicate client id" {
		t.Fatalf(
			"Disconnections = %v, %v; want read error, no reason, duplicate client id", ends, err,
		)
	}
	for _, end := range ends {
		if end.At.Before(begun.Add(-time.Minute)) || end.At.After(time.Now()) {
			t.Errorf("a disconnection at %s, want during the test", end.At)
		}
	}
	if ends, err := f.Disconnections(t.Context(), hubA, begun.Add(-time.Minute), 2); err != nil ||
		len(ends) != 2 || ends[1].Reason != "" {
		t.Errorf("the first two Disconnections = %v, %v; want read error and no reason", ends, err)
	}
	later := time.Now().Add(time.Minute)
	if ends, err := f.Disconnections(t.Context(), hubA, later, 500); err != nil || len(ends) != 0 {
		t.Errorf("Disconnections since a later time = %v, %v; want none", ends, err)
	}
	if ends, err := f.Disconnections(t.Context(), "hub-none-none-none", begun, 500); err != nil ||
		len(ends) != 0 {
		t.Errorf("Disconnections of a hub without a log = %v, %v; want none", ends, err)
	}
}
