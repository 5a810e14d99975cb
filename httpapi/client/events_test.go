package client

import (
	"errors"
	"slices"
	"testing"
)

// The data of each event type is decoded.
func TestEventData(t *testing.T) {
	t.Parallel()
	read := func(into any, data string) string {
		if err := (Event{Data: []byte(data)}).Decode(into); err != nil {
			return err.Error()
		}
		return ""
	}
	var value ChannelObserved
	var named DeviceNamed
	var updated DeviceUpdated
	var credential CredentialCreated
	var rule Rule
	failures := []string{
		read(&value, `{"key":"lock","endpoint":1,"value":true}`), read(&named, `{"name":"x"}`),
		read(&updated, `{"name":"x","removed_channels":["a",{"key":"b"}]}`),
		read(&credential, `{"slot":3,"label":"Ann"}`), read(&rule, `{"name":"r","enabled":true}`),
	}
	failed := slices.ContainsFunc(failures, func(s string) bool { return s != "" })
	if on, _ := value.Value.Bool(); failed || !on || value.Endpoint != 1 || named.Name != "x" ||
		len(updated.RemovedChannels) != 2 ||
		credential.Slot != 3 ||
		!rule.Enabled {
		t.Errorf(
			"got errors %v, %+v %+v %+v %+v %+v, want the data of each event", failures, value,
			named, updated, credential, rule,
		)
	}
	if err := (Event{Data: []byte(`[]`)}).Decode(&named); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
}
