package contract

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

const keyHeader = "Idempotency-Key"

// idempotency tests the paragraph "Idempotency".
func idempotency(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Idempotency")
	house := virtualhub.Config{
		Devices: []virtualhub.DeviceSpec{
			{Kind: "lock"},
			{Kind: "lock", Insecure: true},
			{Kind: "thermostat"},
		},
	}
	const unlock = `{"key":"lock","value":false}`

	t.Run("a retry returns the first response", func(t *testing.T) {
		// "a retry with the same key within 24 hours returns the first response and does not send
		// the command again". "The same key with a different body returns 409
		// idempotency_conflict"; bodies are compared as decoded JSON, and another path is another
		// body (design, section 4).
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		path := commandPath(hub.ID(), 1)
		first := client.Command(path, unlock, keyHeader, "retry")
		streamstest.Eventually(
			t, "unlocked",
			func() bool {
				return getChannel(client, hub.ID(), 1, "lock", 0).Status == "synchronized"
			},
		)
		for _, body := range []string{
			unlock, `{ "value" : false, "key" : "lock" }`,
			"{\"key\":\"\\u006cock\",\n\"value\":false}",
		} {
			if again := client.Command(
				path, body, keyHeader, "retry",
			); !sameJSON(again.Body, first.Body) {
				t.Errorf("same key: got %s\nwant %s", again.Body, first.Body)
			}
		}
		for _, body := range []string{
			`{"key":"lock","value":true}`, `{"key":"level","value":1}`,
			`{"key":"lock","value":false,"endpoint":1}`,
		} {
			client.Rejected(http.MethodPost, path, body, "idempotency_conflict", keyHeader, "retry")
		}
		client.Rejected(
			http.MethodPost, commandPath(hub.ID(), 2), unlock, "idempotency_conflict", keyHeader,
			"retry",
		)
		if n := desiredCount(client, hub, 1, "lock"); n != 1 {
			t.Errorf("one command: got %d runs, want 1", n)
		}
		// "optional by contract": without one, and with another, each is a command of its own.
		client.Command(path, unlock)
		client.Command(path, unlock)
		client.Command(path, unlock, keyHeader, "another")
		if n := desiredCount(client, hub, 1, "lock"); n != 4 {
			t.Errorf("four commands: got %d runs, want 4", n)
		}
	})

	t.Run("keys", func(t *testing.T) {
		// "any unique string up to 255 characters".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		path := commandPath(hub.ID(), 1)
		keys := []string{
			"k",
			strings.Repeat("k", 255),
			"with spaces and \"signs\" / * > . $",
			"../../etc/passwd",
			"KEY",
			"key",
			"k.*",
			"k.>",
			strings.Repeat(".", 200),
		}
		for _, key := range keys {
			client.Command(path, unlock, keyHeader, key)
			client.Command(path, unlock, keyHeader, key)
		}
		if n := desiredCount(client, hub, 1, "lock"); n != len(keys) {
			t.Errorf("got %d runs, want one for each of %d keys", n, len(keys))
		}
		client.Rejected(
			http.MethodPost, path, unlock, "invalid_request", keyHeader, strings.Repeat("k", 256),
		)
	})

	t.Run("of the organization", func(t *testing.T) {
		// "Keys are per organization, over all its API keys" (design, section 4).
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		stranger := c.For(t).OtherTenant("Stranger to idempotency")
		theirs := c.For(t).VirtualHub(stranger, house)
		_, key := c.For(t).OwnService().Key(tenant.Org)
		second := harness.NewClient(t, c.Base, key)
		first := client.Command(commandPath(hub.ID(), 1), unlock, keyHeader, "shared")
		if again := second.Command(
			commandPath(hub.ID(), 1), unlock, keyHeader, "shared",
		); !sameJSON(again.Body, first.Body) {
			t.Errorf("same key: got %s\nwant %s", again.Body, first.Body)
		}
		stranger.Command(
			commandPath(theirs.ID(), 1), `{"key":"lock","value":true}`, keyHeader, "shared",
		)
		if n := desiredCount(client, hub, 1, "lock"); n != 1 {
			t.Errorf("one command: got %d runs, want 1", n)
		}
	})

	t.Run("an error of the hub is the first response", func(t *testing.T) {
		// "Only answers that settle the matter are remembered (202 and the 4xx of the hub)"
		// (design, section 4).
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		hub.RejectCommands(true)
		first := client.Rejected(
			http.MethodPost, commandPath(hub.ID(), 1), unlock, "command_refused", keyHeader,
			"rejected",
		)
		hub.RejectCommands(false)
		again := client.Rejected(
			http.MethodPost, commandPath(hub.ID(), 1), unlock, "command_refused", keyHeader,
			"rejected",
		)
		if again.Message != first.Message {
			t.Errorf("same key: got message %q, want %q", again.Message, first.Message)
		}
		client.Command(commandPath(hub.ID(), 1), unlock, keyHeader, "no longer rejected")
	})

	t.Run("a failed command is sent again", func(t *testing.T) {
		// "503 hub_offline: … nothing was done", "retry on … 502, 503, 504", "(same Idempotency-Key
		// for commands)".
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, house)
		path := commandPath(hub.ID(), 1)
		hub.RadioDown(true)
		client.Rejected(http.MethodPost, path, unlock, "hub_unavailable", keyHeader, "later")
		hub.RadioDown(false)
		client.Command(path, unlock, keyHeader, "later")
		hub.Offline(true)
		awaitStatus(client.Client, hub.ID(), "offline")
		client.Rejected(http.MethodPost, path, unlock, "hub_offline", keyHeader, "later still")
		// A stored response needs no hub.
		client.Command(path, unlock, keyHeader, "later")
		hub.Offline(false)
		harness.Connected(t, hub)
		streamstest.Eventually(t, "accepted once the hub is back", func() bool {
			answer, err := client.Try(http.MethodPost, path, unlock, keyHeader, "later still")
			if err == nil && answer.Status != http.StatusAccepted &&
				answer.Status != http.StatusServiceUnavailable {
				t.Fatalf("hub is back: got %d %s, want 202 or 503", answer.Status, answer.Body)
			}
			return err == nil && answer.Status == http.StatusAccepted
		})
		if n := desiredCount(client, hub, 1, "lock"); n != 2 {
			t.Errorf("two commands: got %d runs, want 2", n)
		}
	})
}

// creations tests the Idempotency-Key of calls that create something. It is an addition to the
// contract with the rules of commands.
func creations(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Creations")

	t.Run("a site is created once", func(t *testing.T) {
		// Regression: a client that repeated POST /v1/sites after a lost answer created two
		// sites.
		client := tenant.For(t)
		answers := atOnce(t, 30, func(int) (harness.Answer, error) {
			return client.Try(http.MethodPost, "/sites", `{"name":"Once"}`, keyHeader, "site")
		})
		for _, answer := range answers {
			if answer.Status != http.StatusCreated || !sameJSON(answer.Body, answers[0].Body) {
				t.Errorf(
					"got %d %s, want the answer %s", answer.Status, answer.Body, answers[0].Body,
				)
			}
		}
		again := client.Create("/sites", `{ "name" : "Once" }`, keyHeader, "site")
		if !sameJSON(again.Body, answers[0].Body) {
			t.Errorf("same key: got %s, want %s", again.Body, answers[0].Body)
		}
		client.Rejected(
			http.MethodPost, "/sites", `{"name":"Twice"}`, "idempotency_conflict", keyHeader,
			"site",
		)
		client.Rejected(
			http.MethodPost, "/invitations", `{"email":"once@example.org"}`, "idempotency_conflict",
			keyHeader, "site",
		)
		client.Rejected(
			http.MethodPost, "/sites", `{"name":"Once"}`, "invalid_request", keyHeader,
			strings.Repeat("k", 256),
		)
		var all siteList
		client.Get("/sites").JSON(t, &all)
		created := 0
		for _, s := range all.Data {
			if s.Name == "Once" {
				created++
			}
		}
		if created != 1 {
			t.Errorf("got %d sites, want 1", created)
		}
	})

	t.Run("an invitation is created once", func(t *testing.T) {
		client := tenant.For(t)
		first := client.Create(
			"/invitations", `{"email":"once@example.org"}`, keyHeader, "invitation",
		)
		again := client.Create(
			"/invitations", `{"email":"once@example.org"}`, keyHeader, "invitation",
		)
		if !sameJSON(again.Body, first.Body) {
			t.Errorf("same key: got %s, want %s", again.Body, first.Body)
		}
	})

	t.Run("a repetition does not move a hub back", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).VirtualHub(tenant, virtualhub.Config{})
		var first, second site
		client.Create("/sites", `{"name":"First"}`).JSON(t, &first)
		client.Create("/sites", `{"name":"Second"}`).JSON(t, &second)
		add := fmt.Sprintf(`{"serial":%q,"site_id":%q}`, hub.ID(), first.ID)
		answer := client.Must(http.MethodPost, "/hubs", add, http.StatusOK, keyHeader, "hub")
		client.Patch("/hubs/"+hub.ID(), fmt.Sprintf(`{"site_id":%q}`, second.ID))
		again := client.Must(http.MethodPost, "/hubs", add, http.StatusOK, keyHeader, "hub")
		if !sameJSON(again.Body, answer.Body) {
			t.Errorf("same key: got %s, want %s", again.Body, answer.Body)
		}
		if at := getHub(client.Client, hub.ID()).SiteID; at != second.ID {
			t.Errorf("site after a repeated request: got %s, want %s", at, second.ID)
		}
		nowhere := strings.Replace(add, first.ID, "01935f2e-0000-7000-8000-00000000000a", 1)
		client.Rejected(http.MethodPost, "/hubs", nowhere, "not_found", keyHeader, "nowhere")
		client.Rejected(http.MethodPost, "/hubs", add, "idempotency_conflict", keyHeader, "nowhere")
	})
}

// atOnce makes n concurrent calls and returns the answers.
func atOnce(t *testing.T, n int, call func(i int) (harness.Answer, error)) []harness.Answer {
	t.Helper()
	answers := make([]harness.Answer, n)
	start := make(chan struct{})
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			<-start
			answer, err := call(i)
			if err != nil {
				t.Error(err)
			}
			answers[i] = answer
		})
	}
	close(start)
	calls.Wait()
	return answers
}

// lateAnswers tests "504 hub_timeout: the hub did not answer within 10 seconds; it may still have
// acted" and "After 504 the hub may still act; retry with the same key."
func lateAnswers(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Late")
	hub := c.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}})
	hub.LateAnswers(20 * time.Second)
	late(t, tenant, hub, 10*time.Second)

	t.Run("the hub is cut off before it has answered", func(t *testing.T) {
		// The hub ran the command; a retry with the same key returns its result.
		client := tenant.For(t)
		const lock = `{"key":"lock","value":true}`
		before := desiredCount(client, hub, 1, "lock")
		hub.LateAnswers(20 * time.Second)
		reported := make(chan harness.Answer, 1)
		go func() {
			answer, err := client.Try(
				http.MethodPost, commandPath(hub.ID(), 1), lock, keyHeader, "cut",
			)
			if err != nil {
				t.Error(err)
			}
			reported <- answer
		}()
		streamstest.Eventually(t, "the hub has the command",
			func() bool { return desiredCount(client, hub, 1, "lock") == before+1 },
		)
		hub.CutConnection()
		hub.LateAnswers(0)
		harness.Connected(t, hub)
		answer := <-reported
		if answer.Status != http.StatusBadGateway &&
			answer.Status != http.StatusServiceUnavailable &&
			answer.Status != http.StatusGatewayTimeout {
			t.Errorf("cut connection: got %d %s, want 502, 503 or 504", answer.Status, answer.Body)
		}
		streamstest.Eventually(t, "the same key returns the hub's result", func() bool {
			answer, err := client.Try(
				http.MethodPost, commandPath(hub.ID(), 1), lock, keyHeader, "cut",
			)
			return err == nil && answer.Status == http.StatusAccepted
		})
		if n := desiredCount(client, hub, 1, "lock"); n != before+1 {
			t.Errorf("one command: got %d runs, want 1", n-before)
		}
	})
}

// late calls a hub that answers after the timeout of the service, but in time for a retry with the
// same key.
func late(t *testing.T, tenant *harness.Tenant, hub *virtualhub.Hub, timeout time.Duration) {
	t.Helper()
	const unlock = `{"key":"lock","value":false}`
	calls := []endpoint{{http.MethodPost, commandPath(hub.ID(), 1), "", unlock, true}}
	for _, e := range endpoints {
		if e.live && !strings.HasSuffix(e.path, "/commands") {
			calls = append(calls, e)
		}
	}
	began := time.Now()
	answers := atOnce(t, len(calls), func(i int) (harness.Answer, error) {
		return tenant.Try(
			calls[i].method, calls[i].at(hub.ID()), calls[i].sent(), keyHeader, "late",
		)
	})
	took := time.Since(began)
	for i, answer := range answers {
		if answer.Status != http.StatusGatewayTimeout || answer.ErrorType() != "hub_timeout" {
			t.Errorf("%s: got %d %s, want 504 hub_timeout", calls[i], answer.Status, answer.Body)
		}
	}
	if took < timeout-100*time.Millisecond || took > timeout+time.Minute {
		t.Errorf("answer after %s, want it after the hub timeout, %s", took, timeout)
	}
	hub.LateAnswers(0)
	var got accepted
	streamstest.Eventually(t, "the same key returns the hub's result", func() bool {
		answer, err := tenant.Try(
			http.MethodPost, commandPath(hub.ID(), 1), unlock, keyHeader, "late",
		)
		if err != nil ||
			answer.Status != http.StatusAccepted && answer.Status != http.StatusGatewayTimeout {
			t.Fatalf("same key: got %d %s %v, want 202 or 504", answer.Status, answer.Body, err)
		}
		if answer.Status == http.StatusAccepted {
			answer.JSON(t, &got)
		}
		return answer.Status == http.StatusAccepted
	})
	if got.Channel.Status != "pending" || string(got.Channel.Value) != "true" ||
		string(got.Channel.Desired) != "false" {
		t.Errorf("got %+v, want the hub's first answer", got)
	}
	if n := desiredCount(tenant, hub, 1, "lock"); n != 1 {
		t.Errorf("one command: got %d runs, want 1", n)
	}
}
