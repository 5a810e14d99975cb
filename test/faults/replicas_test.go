package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestReplicas runs a second API process. Changes answered by one are visible at the other at once,
// and each goes on while the other is slow, stopped or killed.
func TestReplicas(t *testing.T) {
	t.Parallel()
	c := harness.NewTarget(t)
	first := c.OwnService()
	tenant := harness.NewTenant(t, first, "Replicas")
	people := newPeople(t, first, tenant) // before a second replica also delivers mails
	second := first.Replica()
	other := *tenant
	other.Client = harness.NewClient(t, second.Base(), tenant.Key)
	hub := c.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}})
	commands := "/hubs/" + hub.ID() + "/devices/1/commands"
	const unlock = `{"key":"lock","value":false}`

	// The command line works on the data directory of a replica without a broker of its own.
	second.CLI("inventory", "generate", "--prefix", "any")

	t.Run("one reads the writes of the other", func(t *testing.T) {
		here, there := tenant.For(t), other.For(t)
		for i := range 20 {
			var site struct{ ID, Name string }
			here.Must(http.MethodPost, "/sites", map[string]string{
				"name": fmt.Sprintf("Site %d", i),
			}, http.StatusCreated).
				JSON(t, &site)
			there.Must(http.MethodPatch, "/sites/"+site.ID, `{"name":"Renamed"}`, http.StatusOK)
			here.Must(http.MethodGet, "/sites/"+site.ID, nil, http.StatusOK).JSON(t, &site)
			if site.Name != "Renamed" {
				t.Fatalf("site %d renamed on another replica: got %+v, want Renamed", i, site)
			}
			here, there = there, here
		}
		here.Must(
			http.MethodPatch, "/hubs/"+hub.ID()+"/devices/1", `{"name":"Entrance","room":"Hall"}`,
			http.StatusOK,
		)
		var device struct{ Name, Room string }
		there.Must(http.MethodGet, "/hubs/"+hub.ID()+"/devices/1", nil, http.StatusOK).
			JSON(t, &device)
		if device.Name != "Entrance" || device.Room != "Hall" {
			t.Errorf("device labeled on another replica: got %+v, want Entrance in Hall", device)
		}
	})

	t.Run("a command sent to both runs once", func(t *testing.T) {
		for round := range 5 {
			key := fmt.Sprintf("both %d", round)
			answers := make([]harness.Answer, 30)
			var sending sync.WaitGroup
			for i := range answers {
				sending.Go(func() {
					client := tenant.Client
					if i%2 == 1 {
						client = other.Client
					}
					answer, err := client.Try(
						http.MethodPost, commands, unlock, "Idempotency-Key", key,
					)
					if err != nil {
						t.Error(err)
					}
					answers[i] = answer
				})
			}
			sending.Wait()
			for _, answer := range answers {
				if answer.Status != http.StatusAccepted ||
					string(answer.Body) != string(answers[0].Body) {
					t.Errorf(
						"got %d %s, want the answer %s", answer.Status, answer.Body,
						answers[0].Body,
					)
				}
			}
			harness.Stored(t, hub)
			ran := 0
			for _, e := range tenant.For(t).AllEvents(hub.ID(), "") {
				if e.About("channel.desired", 1) {
					ran++
				}
			}
			if ran != round+1 {
				t.Fatalf("got %d runs, want %d", ran, round+1)
			}
		}
		// The same key with another body is a conflict at both.
		for _, client := range []*harness.Client{tenant.Client.For(t), other.Client.For(t)} {
			client.Rejected(
				http.MethodPost, commands, `{"key":"lock","value":true}`, "idempotency_conflict",
				"Idempotency-Key", "both 0",
			)
		}
	})

	t.Run("both share a key's rate limit", func(t *testing.T) {
		// Regression: each replica counted separately, so that two replicas doubled the limit.
		_, key := first.For(t).Key(tenant.Org, "sites:read")
		clients := []*harness.Client{
			harness.NewClient(t, first.Base(), key),
			harness.NewClient(t, second.Base(), key),
		}
		granted, began := 0, time.Now()
		// A busy machine takes longer for the burst.
		ongoing := func() bool {
			took := time.Since(began)
			return took < 3*time.Second || granted < 100 && took < time.Minute
		}
		pace := time.NewTicker(3 * time.Millisecond) // more than both together may send, and not more
		defer pace.Stop()
		for i := 0; ongoing(); i++ {
			<-pace.C
			answer, err := clients[i%2].Try(http.MethodGet, "/sites", nil)
			harness.Must(t, err)
			if answer.Status == http.StatusOK {
				granted++
			}
		}
		// A burst of 100 at each, at worst, and 50 a second at both together.
		if most := 2*100 + int(50*time.Since(began).Seconds()) + 20; granted > most ||
			granted < 100 {
			t.Errorf(
				"got %d requests accepted in %s, want at most %d", granted, time.Since(began), most,
			)
		}
	})

	t.Run("a replica is killed during a command", func(t *testing.T) {
		// The first replica is killed before the hub answers. A repeat with the same key at the
		// other returns the hub's answer.
		before := len(desired(tenant.For(t), hub))
		hub.LateAnswers(time.Second)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			// the request fails: the replica is killed
			_, _ = other.Do(http.MethodPost, commands, unlock, "Idempotency-Key", "killed")
		}()
		streamstest.Eventually(t, "the hub has the command",
			func() bool { return len(desired(tenant.For(t), hub)) == before+1 },
		)
		second.Kill()
		<-sent
		hub.LateAnswers(0)
		began := time.Now()
		answer := tenant.For(t).
			Must(
				http.MethodPost, commands, unlock, http.StatusAccepted, "Idempotency-Key", "killed",
			)
		t.Logf("answered after %s", time.Since(began))
		second.Begin()
		if again := other.For(t).Must(
			http.MethodPost, commands, unlock, http.StatusAccepted, "Idempotency-Key", "killed",
		); string(again.Body) != string(answer.Body) {
			t.Errorf("same key: got %s, want %s", again.Body, answer.Body)
		}
		harness.Stored(t, hub)
		if n := len(desired(tenant.For(t), hub)); n != before+1 {
			t.Errorf("got %d runs of the command, want 1", n-before)
		}
	})

	t.Run("webhooks", func(t *testing.T) { webhooksOfReplicas(t, second, tenant.For(t), hub) })

	t.Run("events and streams", func(t *testing.T) {
		here, there := tenant.For(t), other.For(t)
		after := here.Head(hub.ID())
		one := harness.OpenStream(t, here.Client, hub.ID(), after)
		two := harness.OpenStream(t, there.Client, hub.ID(), after)
		harness.Must(t, hub.Report(1, virtualhub.ChannelRef{Key: "battery"}, 12))
		if a, b := one.Next(t, time.Minute), two.Next(t, time.Minute); a != b {
			t.Errorf("second replica: got %+v, want %+v", b, a)
		}
	})

	t.Run("a revoked key", func(t *testing.T) {
		id, key := first.For(t).Key(tenant.Org)
		client := harness.NewClient(t, second.Base(), key)
		stream := harness.OpenStream(t, client, hub.ID(), "")
		<-stream.Messages
		first.For(t).CLI("key", "revoke", id)
		client.Rejected(http.MethodGet, "/sites", nil, "unauthenticated")
		select {
		case <-stream.Ended:
		case <-time.After(time.Minute):
			t.Error("stream of a revoked key: still open, want it ended")
		}
	})

	t.Run("people", func(t *testing.T) { people.overReplicas(t, first, second, tenant.Org) })
	t.Run("a stopped replica and a revoked key", func(t *testing.T) {
		resumedReplica(t, first.For(t), second, tenant.Org)
	})
	t.Run("a slow replica", func(t *testing.T) {
		slowReplica(t, second, first.For(t), tenant.Org)
	})
	t.Run("a slow replica with the broker inside", func(t *testing.T) {
		slowReplica(t, first, first.For(t), tenant.Org)
	})
	t.Run("a stopped projector", func(t *testing.T) { stoppedProjector(t, first.For(t), second) })
	t.Run("the broker stops", func(t *testing.T) {
		cutOffFromBroker(t, first.For(t), second.For(t), tenant.For(t), hub)
	})
}

// desired returns the channel.desired events of a hub.
func desired(client *harness.Tenant, hub *virtualhub.Hub) []harness.Event {
	client.T.Helper()
	var all []harness.Event
	for _, e := range client.AllEvents(hub.ID(), "") {
		if e.Type == "channel.desired" {
			all = append(all, e)
		}
	}
	return all
}
