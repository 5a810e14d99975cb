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
	entry := logEntry{logEvent: logEvent{
		Type: "channel.desired", DeviceID: &device, Time: at,
		Data: json.RawMessage(`{"key":"lock","endpoint":0,"value":false}`),
	}}
	if got, ok := commandOf(entry, sent); !ok || got.ID != "it" {
		t.Errorf("commandOf: got %q, %t, want it", got.ID, ok)
	}
	entry.Time = at.Add(-time.Minute)
	if got, ok := commandOf(entry, sent); ok {
		t.Errorf("commandOf a minute before: got %q, want none", got.ID)
	}
	entry.DeviceID = nil
	if got, ok := commandOf(entry, sent); ok {
		t.Errorf("commandOf no device: got %q, want none", got.ID)
	}
}
