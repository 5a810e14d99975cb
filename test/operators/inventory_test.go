package operators

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestInventory tests the inventory commands, each of which is in force when it returns.
// Regression: there was no command to replace a stolen enrolment secret, to block a hub, or to
// release a hub that the wrong organization had added.
func TestInventory(t *testing.T) {
	t.Parallel()
	service := harness.Start(t)
	wrong, right := harness.NewTenant(t, service, "Wrong"), harness.NewTenant(t, service, "Right")
	made := service.Inventory(3)
	hub := made[0].Raw(t, service.Public())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	enrols := func(secret string) int {
		status, _ := hub.EnrollWith(key, hub.Serial, secret)
		return status
	}
	listed := func(serial string) map[string]any {
		t.Helper()
		all := service.CLI("inventory", "list")
		at := slices.IndexFunc(
			all, func(line map[string]any) bool { return line["serial"] == serial },
		)
		if len(all) != len(made) || at < 0 {
			t.Fatalf("inventory: got %v, want %d hubs, %s among them", all, len(made), serial)
		}
		return all[at]
	}
	awaitCut := func(what string) {
		t.Helper()
		select {
		case <-hub.Lost:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the hub is still connected", what)
		}
	}

	if line := listed(hub.Serial); line["status"] != "never_enrolled" || line["org_id"] != nil ||
		line["enrolled_at"] != nil {
		t.Errorf("before enrolment: got %v, want never_enrolled without organization", line)
	}
	hub.Enroll()
	hub.GoOnline()
	wrong.Add(hub.Serial)
	if line := listed(hub.Serial); line["status"] != "enrolled" || line["org_id"] != wrong.Org ||
		line["site_id"] != wrong.Site ||
		line["enrolled_at"] == nil {
		t.Errorf("enrolled and added: got %v, want enrolled, with organization and site", line)
	}
	text, _, code := harness.RunBinary(t, "inventory", "list", "--data-dir", service.Dir)
	if code != 0 || !strings.Contains(text, hub.Serial) || !strings.Contains(text, wrong.Org) ||
		strings.Count(text, "\n") != 1+len(made) {
		t.Errorf(
			"list without --json: got exit code %d, want 0, a header and %d hubs:\n%s", code,
			len(made), text,
		)
	}

	// After a rotation the former secret and its certificate are invalid.
	stolen := hub.Secret
	hub.Secret = service.CLI("inventory", "rotate", hub.Serial)[0]["secret"].(string)
	awaitCut("rotate")
	if status := enrols(stolen); status != http.StatusUnauthorized {
		t.Errorf("enrolment with the former secret: got status %d, want 401", status)
	}
	if err := hub.TryConnect(hub.ID); err == nil {
		t.Error("the hub connected with its former certificate")
	}
	if line := listed(hub.Serial); line["status"] != "no_certificate" ||
		line["org_id"] != wrong.Org {
		t.Errorf("after the rotation: got %v, want no_certificate", line)
	}
	hub.Enroll()
	hub.GoOnline()
	// A rotation with --keep-certificate does not disconnect the hub.
	hub.Secret = service.CLI(
		"inventory", "rotate", "--keep-certificate", hub.Serial,
	)[0]["secret"].(string)
	select {
	case <-hub.Lost:
		t.Error("the hub was disconnected although its certificate was kept")
	default:
	}
	hub.EventsFrom("log-1", 1, 3)
	hub.WaitAck("log-1", 3)

	// A blocked hub can neither enrol nor connect.
	service.CLI("inventory", "block", strings.ToLower(hub.Serial))
	awaitCut("block")
	if status := enrols(hub.Secret); status != http.StatusUnauthorized {
		t.Errorf("enrolment of a blocked hub: got status %d, want 401", status)
	}
	if err := hub.TryConnect(hub.ID); err == nil {
		t.Error("a blocked hub connected")
	}
	if line := listed(hub.Serial); line["status"] != "blocked" || line["org_id"] != wrong.Org {
		t.Errorf("after block: got %v, want blocked", line)
	}
	service.CLI("inventory", "unblock", hub.Serial)
	hub.Connect()
	hub.Hello("log-1", 1, 3)
	hub.WaitAck("log-1", 3)

	// A released hub disappears from its organization, and the next one gets none of its events.
	wrong.Must(http.MethodGet, "/hubs/"+hub.ID, nil, http.StatusOK)
	former := wrong.Head(hub.ID)
	stream := harness.OpenStream(t, wrong.Client, hub.ID, "")
	polled := make(chan int, 1)
	go func() {
		answer, err := wrong.Do(
			http.MethodGet, "/hubs/"+hub.ID+"/events?wait=60&after="+former, nil,
		)
		if err != nil {
			t.Error(err)
		}
		polled <- answer.Status
	}()
	streamstest.Eventually(t, "the long-poll waits",
		func() bool { return service.Metrics().Value(t, "hubcloud_httpapi_long_polls") == 1 },
	)
	rewritten := func() float64 { return service.Metrics().Value(t, "hubcloud_views_rebuilds_total") }
	before := rewritten()
	began := time.Now()
	service.CLI("inventory", "release", hub.Serial)
	t.Logf("release: %s", time.Since(began))
	for _, path := range []string{"", "/events", "/events?after=" + former, "/devices"} {
		wrong.Rejected(http.MethodGet, "/hubs/"+hub.ID+path, nil, "not_found")
	}
	var hubs struct{ Data []struct{ ID string } }
	if wrong.Must(http.MethodGet, "/hubs", nil, http.StatusOK).JSON(t, &hubs); len(hubs.Data) != 0 {
		t.Errorf("former organization: got hubs %+v, want none", hubs.Data)
	}
	select {
	case status := <-polled:
		if status != http.StatusNotFound {
			t.Errorf("long poll: got status %d, want 404", status)
		}
	case <-time.After(20 * time.Second):
		t.Error("long poll: got no answer within 20 s")
	}
	select {
	case <-stream.Ended:
	case <-time.After(20 * time.Second):
		t.Error("the stream is still open after 20 s")
	}
	awaitCut("release")
	streamstest.Eventually(t, "the hub's log is emptied", func() bool { return rewritten() > before })
	if line := listed(hub.Serial); line["status"] != "enrolled" || line["org_id"] != nil ||
		line["added_at"] != nil {
		t.Errorf("after release: got %v, want enrolled without organization", line)
	}
	// The hub was offline and still has events from the time of the former organization.
	right.Add(hub.Serial)
	hub.Connect()
	hub.Hello("log-1", 1, 5)
	hub.WaitAck("log-1", 5)
	hub.EventsFrom("log-1", 6, 7)
	hub.WaitAck("log-1", 7)
	events := right.AllEvents(hub.ID, "")
	if n := len(events); n == 0 || string(events[n-1].Observed().Value) != "7" {
		t.Errorf("next organization: got %+v, want the event 7 last", events)
	}
	for _, event := range events {
		if event.Type == "channel.observed" && string(event.Observed().Value) != "6" &&
			string(event.Observed().Value) != "7" {
			t.Errorf("next organization: got %+v, want only the events 6 and 7", event)
		}
	}
	right.Rejected(http.MethodGet, "/hubs/"+hub.ID+"/events?after="+former, nil, "cursor_expired")
	wrong.Rejected(
		http.MethodPost, "/hubs", map[string]string{"serial": hub.Serial, "site_id": wrong.Site},
		"hub_not_addable",
	)

	// The read models match the streams, and no file has the secret.
	for _, row := range service.CLI("projections", "verify") {
		if differences, ok := row["differences"].([]any); !ok || len(differences) > 0 {
			t.Errorf("projections verify: got %v, want no differences", row)
		}
	}
	if file := service.FindInFiles(hub.Secret); file != "" {
		t.Errorf("%s has the secret", file)
	}
	for _, command := range []string{"rotate", "block", "unblock", "release"} {
		if _, stderr, code := harness.RunBinary(
			t, "inventory", command, "--data-dir", service.Dir, "HUB-AAAA-BBBB-CCCC",
		); code == 0 ||
			!strings.Contains(stderr, "not in the inventory") {
			t.Errorf(
				"%s of an unknown hub: got exit code %d, want an error: %s", command, code, stderr,
			)
		}
	}
}
