package hubbridge_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// TestCallsOverMQTT calls methods of a hub over real MQTT. The hub answers with a result, with an
// error, or not at all, and is offline at last.
func TestCallsOverMQTT(t *testing.T) {
	t.Parallel()
	i := newTestBridge(t)
	i.bridge("r1")
	h := i.hub()
	client := h.connect(func(r request) string {
		switch r.Method {
		case protocol.MethodDevicesList:
			return fmt.Sprintf(`{"id":%q,"result":{"devices":[{"id":3}]}}`, r.ID)
		case protocol.MethodDevicesGet:
			return fmt.Sprintf(
				`{"id":%q,"error":{"type":"not_found","message":"no device 4"}}`, r.ID,
			)
		}
		return ""
	})
	h.eventuallyOnline(true)
	var result struct{ Devices []struct{ ID int64 } }
	read := func(raw []byte) error { return json.Unmarshal(raw, &result) }
	if err := i.caller.Call(
		t.Context(), h.id, protocol.MethodDevicesList, struct{}{}, read,
	); err != nil ||
		len(result.Devices) != 1 ||
		result.Devices[0].ID != 3 {
		t.Errorf("%s = %+v, %v, want device 3", protocol.MethodDevicesList, result, err)
	}
	for method, code := range map[string]domain.Code{
		protocol.MethodDevicesGet:  domain.CodeNotFound,
		protocol.MethodPairingOpen: domain.CodeHubTimeout,
	} {
		if err := i.caller.Call(t.Context(), h.id, method, struct{}{}, nil); err == nil ||
			domain.CodeOf(err) != code {
			t.Errorf("%s: got %v, want %s", method, err, code)
		}
	}
	var latencies []time.Duration
	for range 200 {
		began := time.Now()
		if err := i.caller.Call(
			t.Context(), h.id, protocol.MethodDevicesList, struct{}{}, nil,
		); err != nil {
			t.Fatal(err)
		}
		latencies = append(latencies, time.Since(began))
	}
	slices.Sort(latencies)
	t.Logf("latency: median %v, p99 %v", latencies[100], latencies[198])
	client.Disconnect(50)
	h.eventuallyOnline(false)
	err := i.caller.Call(t.Context(), h.id, protocol.MethodDevicesList, struct{}{}, nil)
	if domain.CodeOf(err) != domain.CodeHubOffline {
		t.Errorf("call of an offline hub: got %v, want %s", err, domain.CodeHubOffline)
	}
}
