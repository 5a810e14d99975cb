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
	// The burst of resets and of enrolments, and the time after which another one may follow.
	const burst, refill = 20, 15 * time.Second
	service := harness.Start(t)
	tenant := harness.NewTenant(t, service, "Limits")
	hub, quiet := harness.NewRawHub(t, service), harness.NewRawHub(t, service)
	began := time.Now()
	enrolments := 0.0
	for ; service.Metrics().Value(
		t, "hubcloud_identity_enrolments_total", "result", "rate_limited",
	) == 0; enrolments++ {
		hub.Enroll() // the last one waits until it is accepted
	}
	if most := allowed(burst, time.Since(began), refill); enrolments > most {
		t.Errorf("got %v enrolments, want at most %v", enrolments, most)
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
	resetUntilLimited := func(name string) {
		for n := 0; limited() == 0; n++ {
			before := resets()
			hub.Hello(fmt.Sprint(name, n), 1, 9)
			streamstest.Eventually(t, "the hello is accepted or limited", func() bool {
				return resets() > before || limited() > 0
			})
		}
	}
	resetUntilLimited("more-")
	accepted := resets()
	if most := allowed(burst, time.Since(began), refill); accepted < burst || accepted > most {
		t.Errorf("got %v resets accepted, want %d to %v", accepted, burst, most)
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
	resetUntilLimited("again-")
	accepted += resets()
	if most := allowed(burst, time.Since(began), refill); accepted > most {
		t.Errorf("got %v resets accepted after a kill, want at most %v", accepted, most)
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
	if stored != 2 && accepted == burst {
		t.Errorf("got %d events, want 2", stored)
	}
}

// allowed returns how often a hub may do within a time what it may do burst times at once, and once
// more after each refill.
func allowed(burst int, within, refill time.Duration) float64 {
	return float64(burst) + within.Seconds()/refill.Seconds() + 1
}
