package faults

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestCommandsOutliveCrashes sends one command from 30 concurrent clients, with the same
// Idempotency-Key, while the service is killed and restarted. The hub runs the command once, and
// all accepted answers are equal.
func TestCommandsOutliveCrashes(t *testing.T) {
	t.Parallel()
	const retriers, crashes = 30, 3
	c := harness.NewTarget(t, "--rate", "100000", "--burst", "100000")
	s := c.OwnService()
	tenant := harness.NewTenant(t, s, "Commands")
	hub := c.VirtualHub(tenant, virtualhub.Config{
		Devices: []virtualhub.DeviceSpec{
			{Kind: "lock"},
		}, BackoffMin: 50 * time.Millisecond, BackoffMax: 200 * time.Millisecond,
	})
	// so that the service is killed while it waits for the hub
	hub.LateAnswers(400 * time.Millisecond)
	answers := make([]harness.Answer, retriers)
	var retrying sync.WaitGroup
	for i := range answers {
		retrying.Go(func() {
			streamstest.Poll(time.Minute, func() bool {
				answer, err := tenant.Client.Do(
					http.MethodPost, "/hubs/"+hub.ID()+"/devices/1/commands",
					`{"key":"lock","value":false}`, "Idempotency-Key", "crash",
				)
				if err != nil {
					return false // the service is down
				}
				answers[i] = answer
				return answer.Status == http.StatusAccepted
			})
		})
	}
	for range crashes {
		harness.AnyMoment(200*time.Millisecond, 400*time.Millisecond)
		s.Kill()
		s.Begin()
	}
	hub.LateAnswers(0)
	retrying.Wait()
	for i, answer := range answers {
		if answer.Status != http.StatusAccepted || string(answer.Body) != string(answers[0].Body) {
			t.Errorf(
				"answer %d: got %d %s, want that of the first: %s", i, answer.Status, answer.Body,
				answers[0].Body,
			)
		}
	}
	harness.Stored(t, hub)
	if n := len(desired(tenant.For(t), hub)); n != 1 {
		t.Errorf("got the command run %d times, want 1", n)
	}
}
