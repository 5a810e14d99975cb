package operators

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestHubFaults runs hubs that each break the protocol in one way against one service. Each is
// named by the log, the metric and the doctor, for its own reason only; a hub that behaves is not
// named, and a fault ends when its hub does what was missing.
func TestHubFaults(t *testing.T) {
	t.Parallel()
	service := harness.Start(t)
	tenant := harness.NewTenant(t, service, "Faults")
	newHub := func() *harness.RawHub {
		hub := harness.NewRawHub(t, service)
		hub.BreaksProtocol()
		hub.Enroll()
		hub.Connect()
		return hub
	}
	hello := func(hub *harness.RawHub, newest uint64) {
		hub.Hello("log-1", 1, newest)
		hub.WaitAck("log-1", 0)
		tenant.Add(hub.Serial)
	}
	good := newHub()
	hello(good, 2)
	good.EventsFrom("log-1", 1, 2)
	good.WaitAck("log-1", 2)

	wrong := map[string]*harness.RawHub{}
	for _, reason := range []string{
		"no_hello", "no_progress", "malformed_events", "unreadable_messages", "foreign_topic", "qos2",
	} {
		wrong[reason] = newHub()
	}
	gap, silent := newHub(), wrong["no_progress"]
	hello(silent, 5)
	hello(gap, 5)
	hello(wrong["malformed_events"], 0)
	hello(wrong["foreign_topic"], 0)
	hello(wrong["qos2"], 0)
	event := harness.Numbered(1)
	event["time"] = "yesterday"
	wrong["malformed_events"].Send(
		"events", map[string]any{"log": "log-1", "events": []any{event}},
	)
	wrong["unreadable_messages"].Publish(
		"hub/"+wrong["unreadable_messages"].ID+"/hello", []byte(`{"protocol":1`),
	)
	wrong["foreign_topic"].Publish("hub/another-hub/hello", []byte(`{}`))
	wrong["qos2"].PublishQoS2("hub/"+wrong["qos2"].ID+"/events", []byte(`{}`))
	wrong["qos2 gap"] = gap

	// The gap: the hub sends from 3 again and again, although 1 is the next number.
	reasons := map[string]string{gap.ID: "no_progress"}
	for reason, hub := range wrong {
		if hub != gap {
			reasons[hub.ID] = reason
		}
	}
	deadline := time.Now().Add(3 * time.Minute)
	for missing := reasons; len(missing) > 0; {
		gap.EventsFrom("log-1", 3, 5)
		missing = map[string]string{}
		for hub, reason := range reasons {
			if !logged(service.Log(), "hub breaks the protocol", hub, reason) {
				missing[hub] = reason
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in the log: %v\n%s", missing, service.Log())
		}
		time.Sleep(time.Second) // paces the hub that sends again
	}
	hubs := diagnose(t, service).components["hubs"]
	if !strings.Contains(hubs.Detail, "7 hubs break the hub protocol") {
		t.Errorf("doctor: got %+v, want 7 hubs that break the protocol", hubs)
	}
	if strings.Contains(hubs.Detail, good.ID) ||
		logged(service.Log(), "hub breaks the protocol", good.ID, "") {
		t.Error("the hub that behaves is named")
	}
	for reason, want := range map[string]float64{
		"no_hello": 1, "no_progress": 2, "malformed_events": 1, "unreadable_messages": 1,
		"foreign_topic": 1, "qos2": 1, "mqtt_violation": 0,
	} {
		got := service.Metrics().Value(t, "hubcloud_hubbridge_faulty_hubs", "reason", reason)
		if got != want {
			t.Errorf("metric: got %v hubs with %s, want %v", got, reason, want)
		}
	}
	malformed := wrong["malformed_events"]
	skipped := tenant.Await(malformed.ID, "", "hub.events_skipped", func(e harness.Event) bool {
		return e.Type == "hub.events_skipped"
	})
	var data struct{ Reason string }
	if json.Unmarshal(skipped.Data, &data) != nil || data.Reason != "time" {
		t.Errorf("hub.events_skipped: got %s, want the reason time", skipped.Data)
	}
	person := signIn(t, service, tenant.Owner)
	checkHubPages(t, person, tenant, silent.ID, good.ID)
	// A replica without hubs asks the one that serves the hub.
	person.portal = service.Replica().Public() + "/portal"
	checkHubPages(t, person, tenant, silent.ID, good.ID)

	// The hubs that were stuck go on.
	gap.EventsFrom("log-1", 1, 5)
	gap.WaitAck("log-1", 5)
	silent.EventsFrom("log-1", 1, 5)
	silent.WaitAck("log-1", 5)
	hello(wrong["no_hello"], 0)
	for _, reason := range []string{"no_hello", "no_progress"} {
		streamstest.Eventually(t, "the metric has no hub with "+reason+" that goes on", func() bool {
			return service.Metrics().Value(
				t, "hubcloud_hubbridge_faulty_hubs", "reason", reason,
			) == 0
		})
	}
}

// checkHubPages checks that the portal shows on the page of the hub stuck that its events do not
// arrive, and nothing on that of the hub good.
func checkHubPages(
	t *testing.T, p *person, tenant *harness.Tenant, stuck, good string,
) {
	t.Helper()
	show := func(hub string) bool {
		response, err := p.client.Get(p.portal + "/" + tenant.Org + "/hubs/" + hub)
		harness.Must(t, err)
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Logf("%s: page of hub %s: got %d, %v", p.portal, hub, response.StatusCode, err)
			return false
		}
		return strings.Contains(string(page), `data-reason="no_progress"`)
	}
	// A page without an answer of the replica that serves the hub is shown without faults.
	streamstest.Eventually(t, "the page of the stuck hub shows its fault", func() bool {
		return show(stuck)
	})
	if show(good) {
		t.Errorf("page of hub %s: it shows a fault, want none", good)
	}
}

// logged reports whether a log has a line with a message, a hub and a reason; "" for any reason.
func logged(log, message, hub, reason string) bool {
	for line := range strings.Lines(log) {
		var entry struct {
			Msg    string `json:"msg"`
			HubID  string `json:"hub_id"`
			Reason string `json:"reason"`
		}
		if strings.Contains(line, message) && strings.Contains(line, hub) &&
			(json.Unmarshal([]byte(line), &entry) != nil || entry.HubID == hub) &&
			(reason == "" || strings.Contains(line, reason)) {
			return true
		}
	}
	return false
}
