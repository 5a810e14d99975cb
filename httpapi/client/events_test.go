package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// The newest cursors are remembered, as many as the limit.
func TestRecent(t *testing.T) {
	t.Parallel()
	r := newRecent(100)
	for i := range 1000 {
		cursor := fmt.Sprint(i)
		if !r.add(cursor) || r.add(cursor) || !r.has(cursor) {
			t.Fatalf("cursor %d: got known before or unknown after its add, want known once", i)
		}
		if i >= 100 && (!r.has(fmt.Sprint(i-99)) || r.has(fmt.Sprint(i-100))) {
			t.Fatalf("cursor %d: got the wrong cursors known, want the last 100", i)
		}
	}
	if len(r.known) != 100 || len(r.order) != 100 {
		t.Errorf(
			"got %d known and %d ordered cursors, want 100 of each", len(r.known), len(r.order),
		)
	}
}

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
