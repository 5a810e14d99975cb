package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// retention: "the last 24 hours are kept"; "A cursor older than 24 hours … gets 410
// cursor_expired". The day is five seconds here.
func retention(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Retention")

	t.Run("an old cursor is gone", func(t *testing.T) {
		t.Parallel()
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 2)
		hub.WaitAck("log-1", 2)
		cursor := client.Events(hub.ID, "", 1, 0).NextCursor
		streamstest.Eventually(t, "410 for the old cursor", func() bool {
			answer, err := client.Try(http.MethodGet, "/hubs/"+hub.ID+"/events?after="+cursor, nil)
			return err == nil && answer.Status == http.StatusGone &&
				answer.ErrorType() == "cursor_expired"
		})
		if answer, err := client.Try(http.MethodGet, "/hubs/"+hub.ID+"/events/stream", nil, "Last-Event-ID", cursor); err != nil ||
			answer.Status != http.StatusGone {
			t.Errorf("stream: %d %s %v", answer.Status, answer.Body, err)
		}
		if page := client.Events(hub.ID, "", 100, 0); len(page.Data) != 0 {
			t.Errorf("past the retention the log holds %+v", page)
		}
		// The numbering goes on: no gap is told, and nothing is stored twice.
		hub.Hello("log-1", 3, 2)
		hub.WaitAck("log-1", 2)
		hub.EventsFrom("log-1", 3, 3)
		hub.WaitAck("log-1", 3)
		if page := client.Events(hub.ID, "", 100, 0); len(page.Data) != 1 ||
			page.Data[0].Type != "channel.observed" {
			t.Errorf("after the log was emptied: %+v", page)
		}
	})

	t.Run("a quiet hub read over several retentions", func(t *testing.T) {
		t.Parallel()
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		cursor := client.Events(hub.ID, "", 100, 0).NextCursor
		for range 12 {
			page := client.Events(hub.ID, cursor, 100, 1)
			if len(page.Data) != 0 {
				t.Fatalf("%+v", page)
			}
			cursor = page.NextCursor
		}
		hub.EventsFrom("log-1", 1, 1)
		if page := client.Events(hub.ID, cursor, 100, 10); len(page.Data) != 1 {
			t.Errorf("%+v", page)
		}
	})
}

// streamEnds: "A comment line : keepalive is sent every 30 seconds. The server ends the stream
// after 15 minutes; the client reconnects with Last-Event-ID set to the last processed id." They
// are half a second and three seconds here, and the retention five: what a quiet stream says last
// is still a place to go on from after several of it.
func streamEnds(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Stream ends")
	hub := c.Online(tenant)
	lastID := ""
	for range 4 {
		began := time.Now()
		open := tenant.Stream("/hubs/"+hub.ID+"/events/stream", lastID)
		keepalives := 0
		for ongoing := true; ongoing; {
			select {
			case m := <-open.Messages:
				if m.ID != "" {
					lastID = m.ID
				}
				if m.Comment == "keepalive" {
					keepalives++
				}
			case <-open.Ended:
				ongoing = false
			case <-time.After(time.Minute):
				t.Fatal("a stream of 3 s goes on")
			}
		}
		if took := time.Since(began); keepalives < 1 || keepalives > 7 || took < 2*time.Second {
			t.Errorf("%d keepalives in %s", keepalives, took)
		}
	}
	hub.EventsFrom("log-1", 1, 1)
	hub.WaitAck("log-1", 1)
	open := tenant.Stream("/hubs/"+hub.ID+"/events/stream", lastID)
	if first := open.Next(t, time.Minute); !strings.Contains(first.Data, `"value":1`) {
		t.Errorf("%+v", first)
	}
}

// streamsPerKey: the service has a limit of its own on the streams that a key holds open, three
// here, and tells it as `429 rate_limited`.
func streamsPerKey(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Streams")
	hub := c.Online(tenant)
	path := "/hubs/" + hub.ID + "/events/stream"
	var open []*harness.Stream
	for range 3 {
		open = append(open, tenant.Stream(path, ""))
	}
	answer, err := tenant.Do(http.MethodGet, path, nil)
	if err != nil || answer.Status != http.StatusTooManyRequests ||
		answer.ErrorType() != "rate_limited" ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s %v", answer.Status, answer.Header, answer.Body, err)
	}
	harness.CheckAPIError(t, answer)
	tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	open[0].Close()
	streamstest.Eventually(t, "room for another stream", func() bool {
		// A refused stream is an answer; one that is let in goes on: it is asked for with a cursor
		// that nothing has.
		answer, err := tenant.Do(http.MethodGet, path, nil, "Last-Event-ID", "garbage")
		return err == nil && answer.Status == http.StatusBadRequest
	})
}

// hubTimeouts: as lateAnswers, with a second in place of ten; and a hub that never answers.
func hubTimeouts(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Hub timeouts")
	hub := c.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}})
	hub.LateAnswers(1500 * time.Millisecond)
	late(t, tenant, hub, time.Second)

	t.Run("never", func(t *testing.T) {
		client := tenant.For(t)
		silent := c.For(t).RawHub()
		seen := make(chan string, 100)
		silent.OnRequest(func(request harness.Request) harness.Response {
			var params struct {
				CommandID string `json:"command_id"`
			}
			request.DecodeParams(&params)
			seen <- params.CommandID
			return harness.Response{Silent: true}
		})
		silent.Enroll()
		silent.GoOnline()
		client.Add(silent.Serial)
		// "504 … yes, with backoff (same Idempotency-Key for commands)": each try reaches the hub,
		// under the same command id. The same key with another body is a conflict, also before the
		// matter is settled.
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":true}`,
			http.StatusGatewayTimeout, "hub_timeout", keyHeader, "never",
		)
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":false}`,
			http.StatusConflict, "idempotency_conflict", keyHeader, "never",
		)
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":true}`,
			http.StatusGatewayTimeout, "hub_timeout", keyHeader, "never",
		)
		first := <-seen
		if again := <-seen; again != first || first == "" {
			t.Errorf("command id %q, then %q", first, again)
		}
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":true}`,
			http.StatusGatewayTimeout, "hub_timeout",
		)
		if other := <-seen; other == first {
			t.Error("a command without a key took another's command id")
		}
	})
}

// idempotencyWindow: "a retry with the same key within 24 hours returns the first response". The
// day is eight seconds here; after it the key is as new.
func idempotencyWindow(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Window")
	hub := c.VirtualHub(
		tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "thermostat"}}},
	)
	path := commandPath(hub.ID(), 1)
	body := func(degrees int) string { return fmt.Sprintf(`{"key":"heating_setpoint","value":%d}`, degrees) }
	// The hub is busy with other tests' load: a command that came too late is repeated, as the
	// contract has it.
	send := func(degrees int) harness.Answer {
		t.Helper()
		for {
			answer, err := tenant.Try(http.MethodPost, path, body(degrees), keyHeader, "window")
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status != http.StatusGatewayTimeout {
				return answer
			}
		}
	}
	if answer := send(20); answer.Status != http.StatusAccepted {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	began := time.Now()
	if answer := send(21); answer.Status != http.StatusConflict &&
		time.Since(began) < 6*time.Second {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	streamstest.Eventually(t, "the key is as new",
		func() bool { return send(21).Status == http.StatusAccepted },
	)
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("as new after %s", took)
	}
}

// invitationExpiry: "pending, 7 days elapse: expired". They are eight seconds here.
func invitationExpiry(t *testing.T, c *harness.Target) {
	s := c.OwnService()
	tenant := c.Tenant("Expiry")
	const email = "late@expiry.example.com"
	var made invitation
	tenant.Must(http.MethodPost, "/invitations", map[string]string{
		"email": email,
	}, http.StatusCreated).
		JSON(t, &made)
	if !pending(tenant, made.ID) {
		t.Error("not pending before it has expired")
	}
	link := s.Mails(email, 1)[0].Link()
	streamstest.Eventually(t, "no longer listed", func() bool { return !pending(tenant, made.ID) })
	dead(t, tenant, link, email)
	tenant.Rejected(
		http.MethodDelete, "/invitations/"+made.ID, nil, http.StatusNotFound, "not_found",
	)
	// Who comes too late can be invited again, and may come too late again on a busy machine.
	streamstest.Eventually(t, "a second invitation works", func() bool {
		_, link := invite(s, tenant, email, "admin")
		return harness.Open(t, http.MethodGet, link).Status == http.StatusOK
	})
	if m, ok := memberOf(tenant, email); !ok || m.Role != "admin" {
		t.Errorf("%+v", m)
	}
}
