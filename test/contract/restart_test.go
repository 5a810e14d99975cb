package contract

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// killed kills the service several times while 30 retries of one command are running: "the hub runs
// it once even if two retries race", and all answers are equal. Members, invitations, names, rooms
// and stored responses persist.
func killed(t *testing.T, c *harness.Target) {
	const rounds, retries = 3, 30
	s := c.OwnService()
	tenant := c.Tenant("Killed")
	cfg := virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock", Name: "Front door"}}}
	cfg.Dir = t.TempDir()
	cfg.BackoffMin, cfg.BackoffMax = 100*time.Millisecond, 300*time.Millisecond
	hub := c.VirtualHub(tenant, cfg)
	const unlock = `{"key":"lock","value":false}`
	path := commandPath(hub.ID(), 1)

	tenant.Patch(devicePath(hub.ID(), 1), `{"name":"Entrance","room":"Hall"}`)
	admin := joined(t, s, tenant, "before@killed.example.com", "admin")
	invited, link := invite(s, tenant, "open@killed.example.com", "member")
	first := tenant.Command(path, unlock, keyHeader, "before")

	for round := range rounds {
		key := []string{"first", "second", "third"}[round]
		// The hub answers late, so that the service is killed while it waits for the answers.
		hub.LateAnswers(time.Duration(round) * 150 * time.Millisecond)
		var sent atomic.Int64
		answers := make([]harness.Answer, retries)
		var retrying sync.WaitGroup
		for i := range retries {
			retrying.Go(func() {
				client := tenant.For(t).Client
				// The service has 90 s to start again.
				streamstest.Poll(3*time.Minute, func() bool {
					sent.Add(1)
					answer, err := client.Do(http.MethodPost, path, unlock, keyHeader, key)
					// "retry on network errors, 429, 502, 503, 504".
					if err != nil || answer.Status == http.StatusTooManyRequests ||
						answer.Status >= 502 {
						return false
					}
					answers[i] = answer
					return true
				})
			})
		}
		streamstest.Eventually(t, "every client has sent the command", func() bool {
			return sent.Load() >= retries
		})
		harness.AnyMoment(
			time.Duration(round)*40*time.Millisecond, time.Duration(round+1)*40*time.Millisecond,
		)
		s.Kill()
		s.Begin()
		retrying.Wait()
		for _, answer := range answers {
			if answer.Status != http.StatusAccepted || !sameJSON(answer.Body, answers[0].Body) {
				t.Fatalf(
					"round %d: got answers %d %s and %d %s, want equal ones with 202", round,
					answers[0].Status, answers[0].Body, answer.Status, answer.Body,
				)
			}
		}
		hub.LateAnswers(0)
		harness.Connected(t, hub)
		if n := desiredCount(tenant, hub, 1, "lock"); n != 2+round {
			t.Fatalf("round %d: got %d runs, want %d", round, n, 2+round)
		}
	}

	stopped(t, s, tenant, hub)
	if again := tenant.Command(
		path, unlock, keyHeader, "before",
	); !sameJSON(again.Body, first.Body) {
		t.Errorf("same key after restarts: got %s, want %s", again.Body, first.Body)
	}
	isLabeled(tenant, hub.ID(), 1, "Entrance", "Hall")
	if m, ok := memberOf(tenant, admin.Email); !ok || m != admin {
		t.Errorf("got %+v, want %+v", m, admin)
	}
	if !pending(tenant, invited.ID) {
		t.Error("open invitation after restarts: not listed, want it pending")
	}
	if page := harness.Open(t, http.MethodGet, link); page.Status != http.StatusOK {
		t.Errorf("invitation link after restarts: got %d %s, want 200", page.Status, page.Body)
	}
	if _, ok := memberOf(tenant, "open@killed.example.com"); !ok {
		t.Error("invitation link opened after restarts: got no member")
	}
}

// stopped stops the service with SIGTERM while a command is running and a stream is open. The
// command finishes, the stream ends, and it continues after the restart without a gap.
func stopped(t *testing.T, s *harness.Service, tenant *harness.Tenant, hub *virtualhub.Hub) {
	t.Helper()
	const lock = `{"key":"lock","value":true}`
	before := desiredCount(tenant, hub, 1, "lock")
	events := "/hubs/" + hub.ID() + "/events/stream"
	open := tenant.Stream(events, "")
	position := <-open.Messages
	hub.LateAnswers(500 * time.Millisecond)
	reported := make(chan harness.Answer, 1)
	go func() {
		answer, err := tenant.Do(
			http.MethodPost, commandPath(hub.ID(), 1), lock, keyHeader, "stopped",
		)
		if err != nil {
			t.Error(err)
		}
		reported <- answer
	}()
	streamstest.Eventually(t, "the hub has the command",
		func() bool { return desiredCount(tenant, hub, 1, "lock") == before+1 },
	)
	s.Stop()
	answer := <-reported
	if answer.Status != http.StatusAccepted {
		t.Errorf("command during shutdown: got %d %s, want 202", answer.Status, answer.Body)
	}
	select {
	case <-open.Ended:
	case <-time.After(time.Minute):
		t.Error("stream: still open a minute after the shutdown began")
	}
	hub.LateAnswers(0)
	s.Begin()
	harness.Connected(t, hub)
	if again := tenant.Command(
		commandPath(hub.ID(), 1), lock, keyHeader, "stopped",
	); !sameJSON(again.Body, answer.Body) {
		t.Errorf("same key after the restart: got %s, want %s", again.Body, answer.Body)
	}
	if n := desiredCount(tenant, hub, 1, "lock"); n != before+1 {
		t.Errorf("one command: got %d runs, want 1", n-before)
	}
	resumed := tenant.Stream(events, position.ID)
	for _, want := range tenant.AllEvents(hub.ID(), position.ID) {
		if m := resumed.Next(t, time.Minute); m.ID != want.Cursor {
			t.Fatalf("stream: got %+v, want %+v as in the log", m, want)
		}
	}
}
