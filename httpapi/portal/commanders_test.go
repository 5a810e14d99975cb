package portal

import (
	"encoding/json"
	"testing"
	"time"

	"hubcloud/domain"
)

// A command in the event log is named after who sent it: of that device, channel and value, and at
// that time.
func TestCommandOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	command := func(id string, device int64, value string, after time.Duration) domain.CommandRecord {
		return domain.CommandRecord{
			ID: id, DeviceID: device, Key: "lock", Value: json.RawMessage(value), At: at.Add(after),
		}
	}
	sent := []domain.CommandRecord{
		command("later", 1, "false", time.Hour), command("locks", 1, "true", 0),
		command("other", 2, "false", 0), command("it", 1, "false", -2*time.Second),
	}
	device := int64(1)
	entry := logEntry{logEvent: logEvent{DeviceID: &device, Time: at}}
	lock := channelEvent{Key: "lock", Value: json.RawMessage("false")}
	for after, want := range map[time.Duration]string{0: "it", -time.Minute: "", 20 * time.Second: ""} {
		entry.Time = at.Add(after)
		if got, ok := commandOf(entry, lock, sent, commandDelay); got.ID != want || ok != (want != "") {
			t.Errorf("commandOf %s later: got %q, %t, want %q", after, got.ID, ok, want)
		}
	}
	entry.Time = at.Add(20 * time.Second)
	if got, ok := commandOf(entry, lock, sent, reportDelay); !ok || got.ID != "it" {
		t.Errorf("commandOf a report: got %q, %t, want it", got.ID, ok)
	}
}
