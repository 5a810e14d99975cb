package hublog

import (
	"encoding/json"
	"testing"
	"time"

	"hubcloud/domain"
)

// linkEvent makes an event of the cloud's.
func linkEvent(t *testing.T, kind, data string) Record {
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
	return Record{Payload: payload, EpochID: domain.NewEpochID(0xa), FromCloud: true, Connection: "c"}
}

// The ends of a hub's connections are found among everything else in its log: other events of the
// cloud, and of the hub.
func TestDisconnectionsAreFound(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 5)
	for n, reason := range []string{`"read error"`, `null`, `"duplicate client id"`} {
		records := []Record{
			linkEvent(t, domain.EventHubConnected, `{}`),
			linkEvent(t, domain.EventHubEventsSkipped, `{"from":1,"to":2}`),
			linkEvent(t, domain.EventHubDisconnected, `{"reason":`+reason+`}`),
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
		t.Fatalf("%v, %v", ends, err)
	}
	for _, end := range ends {
		if end.At.Before(begun.Add(-time.Minute)) || end.At.After(time.Now()) {
			t.Errorf("at %s", end.At)
		}
	}
	if ends, err := f.Disconnections(t.Context(), hubA, begun.Add(-time.Minute), 4); err != nil ||
		len(ends) != 1 {
		t.Errorf("of the first four events: %v, %v", ends, err)
	}
	if ends, err := f.Disconnections(t.Context(), hubA, time.Now().Add(time.Minute), 500); err != nil ||
		len(ends) != 0 {
		t.Errorf("of the future: %v, %v", ends, err)
	}
	if ends, err := f.Disconnections(t.Context(), "hub-none-none-none", begun, 500); err != nil ||
		len(ends) != 0 {
		t.Errorf("of no hub: %v, %v", ends, err)
	}
}
