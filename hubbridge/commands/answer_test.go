package commands

import (
	"encoding/json"
	"reflect"
	"testing"

	"hubcloud/domain"
)

// TestStoredAnswer: answers are read by other versions of the service, so their JSON stays.
func TestStoredAnswer(t *testing.T) {
	t.Parallel()
	unit, observed := "°C", "2026-01-02T03:04:05.000000Z"
	for want, channel := range map[string]domain.Channel{
		`{"channel":{"key":"t","endpoint":1,"kind":"k","unit":"°C","available":true,"value":21.50,` +
			`"observed_at":"2026-01-02T03:04:05.000000Z","desired":22,` +
			`"desired_at":"2026-01-02T03:04:05.000000Z","status":"pending"}}`: {
			Key: "t", Endpoint: 1, Kind: "k", Unit: &unit, Available: true,
			Value: json.RawMessage(`21.50`), ObservedAt: &observed,
			Desired: json.RawMessage(`22`), DesiredAt: &observed, Status: domain.ChannelPending,
		},
		`{"channel":{"key":"t","endpoint":0,"kind":"k","unit":null,"available":false,` +
			`"status":"pending"}}`: {Key: "t", Kind: "k", Status: domain.ChannelPending},
	} {
		got, err := json.Marshal(finalAnswer(channel, nil))
		if err != nil || string(got) != want {
			t.Errorf("stored %s, %v, want %s", got, err, want)
		}
		restored, err := restoreAnswer([]byte(want))
		if err != nil || !reflect.DeepEqual(restored, channel) {
			t.Errorf("restored %+v, %v, want %+v", restored, err, channel)
		}
	}
	const want = `{"code":"not_found","message":"no such device"}`
	rejected := domain.Errorf(domain.CodeNotFound, "no such device")
	got, err := json.Marshal(finalAnswer(domain.Channel{}, rejected))
	if err != nil || string(got) != want {
		t.Errorf("stored %s, %v, want %s", got, err, want)
	}
	if _, err := restoreAnswer([]byte(want)); !reflect.DeepEqual(err, error(rejected)) {
		t.Errorf("restored error %v, want %v", err, rejected)
	}
}
