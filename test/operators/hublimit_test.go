package operators

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestAHubCannotGrowTheDirectory limits how many permanent facts a hub can cause. Regression: one
// hub could create 525 facts a second by resets, and as many by enrolments. The hub must wait, also
// after a restart of the service; it loses nothing, and operators see which hub is limited.
func TestAHubCannotGrowTheDirectory(t *testing.T) {
	t.Parallel()
	const burst = 3
	service := harness.Start(
		t, "--hub-resets", "1", "--hub-reset-burst", fmt.Sprint(burst), "--hub-enrolments", "30",
		"--hub-enrolment-burst", fmt.Sprint(burst),
	)
	tenant := harness.NewTenant(t, service, "Limits")
	hub, quiet := harness.NewRawHub(t, service), harness.NewRawHub(t, service)
	for range burst + 1 {
		hub.Enroll() // the last enrolment is stored to retry
	}
	if limited := service.Metrics().Value(
		t, "hubcloud_identity_enrolments_total", "result", "rate_limited",
	); limited < 1 {
		t.Errorf("got %v limited enrolments, want at least 1", limited)
	}
	hub.GoOnline()
	tenant.Add(hub.Serial)
	quiet.Enroll()
	quiet.GoOnline()
	tenant.Add(quiet.Serial)
	for n := range burst {
		log := fmt.Sprint("reset-", n)
		hub.Hello(log, 1, 2)
		hub.WaitAck(log, 0)
	}
	hub.EventsFrom(fmt.Sprint("reset-", burst-1), 1, 2)
	hub.WaitAck(fmt.Sprint("reset-", burst-1), 2)
	resets := func() float64 {
		return service.Metrics().Value(t, "hubcloud_hubbridge_resets_total")
	}
	limited := func() float64 {
		return service.Metrics().Value(t, "hubcloud_hubbridge_hellos_total", "outcome", "limited")
	}
	began := time.Now()
	hub.Hello("more", 1, 9)
	streamstest.Eventually(t, "the hello is limited", func() bool { return limited() > 0 })
	if n := resets(); n != burst {
		t.Errorf("got %v resets accepted, want %d", n, burst)
	}
	if !strings.Contains(service.Log(), "hub limited") {
		t.Error("log: want \"hub limited\"")
	}
	out, _, _ := harness.RunBinary(
		t, "doctor", "--data-dir", service.Dir, "--hub-facts", fmt.Sprint(burst),
	)
	var hubs string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == "hubs" {
			hubs = line
		}
	}
	if !strings.Contains(hubs, hub.ID) || !strings.Contains(hubs, "too often") ||
		strings.Contains(hubs, quiet.ID) {
		t.Errorf("doctor: got\n%s\nwant only hub %s, too often", out, hub.ID)
	}
	// The limit survives a kill.
	service.Kill()
	service.Begin()
	hub.Connect()
	hub.Hello("again", 1, 9)
	streamstest.Eventually(t, "the hello is limited",
		func() bool { return limited() > 0 || resets() > 0 },
	)
	if n := resets(); n > 0 && time.Since(began) < 50*time.Second {
		t.Errorf("got %v resets accepted after a kill, want 0", n)
	}
	// Other hubs are not limited, and stored events stay readable.
	quiet.Connect()
	quiet.Hello("log-1", 1, 0)
	quiet.WaitAck("log-1", 0)
	stored := 0
	for _, event := range tenant.AllEvents(hub.ID, "") {
		if event.Type == "channel.observed" {
			stored++
		}
	}
	if stored != 2 && time.Since(began) < 50*time.Second {
		t.Errorf("got %d events, want 2", stored)
	}
}
