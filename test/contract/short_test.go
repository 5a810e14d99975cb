package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// shortRetention is the retention of TestShortLimits.
const shortRetention = 10 * time.Second

// retention tests "the last 24 hours are kept" and "A cursor older than 24 hours … gets 410
// cursor_expired", with a retention of ten seconds.
func retention(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Retention")

	t.Run("an old cursor has expired", func(t *testing.T) {
		t.Parallel()
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 2)
		hub.WaitAck("log-1", 2)
		cursor := client.Events(hub.ID, "", 1, 0).NextCursor
		feed := orgEvents(client, "", "").NextCursor
		for _, path := range []string{"/events?limit=1", "/hubs/" + hub.ID + "/events?limit=1"} {
			client.Get(path, "Reader", "stopped")
		}
		streamstest.Eventually(t, "410 for the old cursor", func() bool {
			answer, err := client.Try(http.MethodGet, "/hubs/"+hub.ID+"/events?after="+cursor, nil)
			return err == nil && answer.Status == http.StatusGone &&
				answer.ErrorType() == "cursor_expired"
		})
		if answer, err := client.Try(
			http.MethodGet, "/hubs/"+hub.ID+"/events/stream", nil, "Last-Event-ID", cursor,
		); err != nil ||
			answer.Status != http.StatusGone {
			t.Errorf(
				"stream after an old cursor: got %d %s %v, want 410", answer.Status, answer.Body,
				err,
			)
		}
		streamstest.Eventually(t, "410 for the old position of the organization", func() bool {
			answer, err := client.Try(http.MethodGet, "/events?after="+feed, nil)
			return err == nil && answer.Status == http.StatusGone &&
				answer.ErrorType() == "cursor_expired"
		})
		if answer, err := client.Try(
			http.MethodGet, "/events/stream", nil, "Last-Event-ID", feed,
		); err != nil || answer.Status != http.StatusGone {
			t.Errorf("stream after an old position: got %d %v, want 410", answer.Status, err)
		}
		var webhook struct{ ID string }
		client.Create("/webhooks", `{"url":"http://127.0.0.1:1/"}`).JSON(t, &webhook)
		client.Rejected(
			http.MethodPost, "/webhooks/"+webhook.ID+"/replay", `{"after":"`+feed+`"}`,
			"cursor_expired",
		)
		// Readers that stopped at these positions are listed as such.
		streamstest.Eventually(t, "both readers have expired", func() bool {
			found := readersOf(client, "stopped")
			return len(found) == 2 && !slices.ContainsFunc(found, func(r listedReader) bool {
				return r.State != "expired" || r.EventsBehind != nil || r.ExpiresIn != 0 ||
					r.SecondsBehind < 5
			})
		})
		if page := client.Events(hub.ID, "", 100, 0); len(page.Data) != 0 {
			t.Errorf("after the retention: got %+v, want no events", page)
		}
		// The numbering continues: no gap is reported, and nothing is stored twice.
		hub.Hello("log-1", 3, 2)
		hub.WaitAck("log-1", 2)
		next := uint64(3)
		streamstest.Eventually(t, "an event after the log was emptied", func() bool {
			hub.EventsFrom("log-1", next, next)
			hub.WaitAck("log-1", next)
			page := client.Events(hub.ID, "", 100, 0) // without the event if that has expired
			for i, e := range page.Data {
				want := text(number(next - uint64(len(page.Data)-1-i)))
				if e.Type != "channel.observed" || string(e.Observed().Value) != want {
					t.Fatalf("after event %d: got %s", next, harness.FormatEvents(page.Data))
				}
			}
			next++
			return len(page.Data) > 0
		})
	})

	t.Run("a quiet hub read over several retentions", func(t *testing.T) {
		t.Parallel()
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		last := uint64(0)
		// A cursor expires on a machine that is too slow for so short a retention: then again.
		streamstest.Eventually(t, "a cursor goes on for two retentions", func() bool {
			cursor := client.Events(hub.ID, "", 100, 0).NextCursor
			for began := time.Now(); ; {
				quiet := time.Since(began) < 2*shortRetention
				if !quiet {
					last++
					hub.EventsFrom("log-1", last, last)
				}
				answer, err := client.Try(
					http.MethodGet, "/hubs/"+hub.ID+"/events?wait=1&after="+cursor, nil,
				)
				if err == nil && answer.Status == http.StatusGone {
					return false
				}
				if err != nil || answer.Status != http.StatusOK {
					t.Fatalf("quiet hub: got %d %s, %v, want a page", answer.Status, answer.Body, err)
				}
				var page harness.Page
				if answer.JSON(t, &page); len(page.Data) > 0 {
					if quiet {
						t.Fatalf("quiet hub: got %+v, want no events", page)
					}
					return true
				}
				cursor = page.NextCursor
			}
		})
	})
}

// streamEnds tests "A comment line : keepalive is sent every 30 seconds. The server ends the stream
// after 15 minutes; the client reconnects with Last-Event-ID set to the last processed id.", with
// half a second, three seconds and a retention of ten. The last id of a quiet stream stays a valid
// cursor over several retentions.
func streamEnds(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Stream ends")
	hub := c.Online(tenant)
	sent := uint64(0)
	// A position expires on a machine that is too slow for so short a retention: then again.
	streamstest.Eventually(t, "a position goes on for two retentions", func() bool {
		lastID, keepalives, streams := "", 0, 0
		for began := time.Now(); ; streams++ {
			quiet := time.Since(began) < 2*shortRetention
			if !quiet {
				sent++
				hub.EventsFrom("log-1", sent, sent)
				hub.WaitAck("log-1", sent)
			}
			opened := time.Now()
			open, answer, err := tenant.TryStream("/hubs/"+hub.ID+"/events/stream", lastID)
			if err == nil && answer.Status == http.StatusGone {
				return false
			}
			if err != nil || open == nil {
				t.Fatalf("stream: got %d %s, %v", answer.Status, answer.Body, err)
			}
			defer open.Close()
			select {
			case <-open.Ended:
			case <-time.After(time.Minute):
				t.Fatal("stream of 3 s: still open")
			}
			took, before := time.Since(opened), keepalives
			for len(open.Messages) > 0 {
				m := <-open.Messages
				if m.Data != "" {
					if quiet || !strings.Contains(m.Data, `"value":`+text(number(sent))) {
						t.Fatalf("stream of %d events after the last id: got %+v", sent, m)
					}
					if keepalives < streams {
						t.Errorf("got %d keepalives in %d streams", keepalives, streams)
					}
					return true
				}
				if m.ID != "" {
					lastID = m.ID
				}
				if m.Comment == "keepalive" {
					keepalives++
				}
			}
			if most := 1 + int(took/(500*time.Millisecond)); keepalives-before > most || took < 2*time.Second {
				t.Errorf("got %d keepalives in %s", keepalives-before, took)
			}
			if !quiet {
				return false // the stream ended before the event
			}
		}
	})
}

// streamOfMessages tests that a stream has messages (id, event and data) and comment lines `:
// keepalive`, and nothing else: other blocks, also one that has only a comment, reach the programs
// behind public clients as empty messages.
func streamOfMessages(t *testing.T, c *harness.Target) {
	message := regexp.MustCompile(`^id: \S+\nevent: [a-z_.]+\ndata: {.*}$`)
	tenant := c.Tenant("Stream of messages")
	hub := c.Online(tenant)
	sent := uint64(0)
	// read sends an event while a stream is open, and counts what the whole stream has.
	read := func(path string) (keepalives, messages int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, tenant.Base+path, nil)
		harness.Must(t, err)
		request.Header.Set("Authorization", "Bearer "+tenant.Key)
		answer, err := tenant.HTTP.Transport.RoundTrip(request)
		harness.Must(t, err)
		defer answer.Body.Close()
		sent++
		hub.EventsFrom("log-1", sent, sent)
		hub.WaitAck("log-1", sent)
		text, err := io.ReadAll(answer.Body) // to the end of the stream
		if err != nil {
			t.Fatalf("%s: got %q, %v", path, text, err)
		}
		for block := range strings.SplitSeq(string(text), "\n\n") {
			for rest, ok := strings.CutPrefix(block, ": keepalive\n"); ok; {
				keepalives++
				block = rest
				rest, ok = strings.CutPrefix(block, ": keepalive\n")
			}
			if message.MatchString(block) {
				messages++
			} else if block != "" { // the end of the stream
				t.Errorf("%s: got the block %q, want a message", path, block)
			}
		}
		return keepalives, messages
	}
	for _, path := range []string{
		"/hubs/" + hub.ID + "/events/stream", "/events/stream?hub_id=" + hub.ID,
	} {
		// A stream lasts three seconds, in which an event may not arrive on a busy machine.
		streamstest.Eventually(t, path+" has a message and keepalives", func() bool {
			keepalives, messages := read(path)
			return keepalives > 0 && messages > 0
		})
	}
}

// streamsPerKey tests the service's limit on open streams per key, three here, which is answered
// with `429 rate_limited`.
func streamsPerKey(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Streams")
	hub := c.Online(tenant)
	path := "/hubs/" + hub.ID + "/events/stream"
	// A stream lasts three seconds, so on a busy machine the first may end before the fourth begins.
	var answer harness.Answer
	streamstest.Eventually(t, "three streams are open", func() bool {
		var ended []<-chan struct{}
		for range 3 {
			ended = append(ended, tenant.Stream(path, "").Ended)
		}
		fourth, rejected, err := tenant.TryStream(path, "")
		harness.Must(t, err)
		if fourth == nil {
			answer = rejected
			return true
		}
		fourth.Close()
		for _, ended := range ended {
			<-ended
		}
		return false
	})
	if answer.Status != http.StatusTooManyRequests || answer.ErrorType() != "rate_limited" ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf(
			"fourth stream: got %d %v %s, want 429 with Retry-After", answer.Status,
			answer.Header, answer.Body,
		)
	}
	harness.CheckAPIError(t, answer)
	tenant.Get("/sites")
	streamstest.Eventually(t, "another stream is accepted", func() bool {
		// An accepted stream would not return, so request one with an invalid cursor.
		answer, err := tenant.Do(http.MethodGet, path, nil, "Last-Event-ID", "garbage")
		return err == nil && answer.Status == http.StatusBadRequest
	})
}

// hubTimeouts is lateAnswers with a timeout of one second, and with a hub that never answers.
func hubTimeouts(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Hub timeouts")
	hub := c.VirtualHub(tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "lock"}}})
	hub.LateAnswers(10 * time.Second)
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
		// hub has answered.
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":true}`,
			"hub_timeout", keyHeader, "never",
		)
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":false}`,
			"idempotency_conflict", keyHeader, "never",
		)
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":true}`,
			"hub_timeout", keyHeader, "never",
		)
		first := <-seen
		if again := <-seen; again != first || first == "" {
			t.Errorf("got command id %q, then %q, want the same", first, again)
		}
		client.Rejected(
			http.MethodPost, commandPath(silent.ID, 1), `{"key":"lock","value":true}`,
			"hub_timeout",
		)
		if other := <-seen; other == first {
			t.Error("command without a key: got the command id of another")
		}
	})
}

// idempotencyWindow tests "a retry with the same key within 24 hours returns the first response",
// with a window of eight seconds. After it the key is unused again.
func idempotencyWindow(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Window")
	hub := c.VirtualHub(
		tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "thermostat"}}},
	)
	path := commandPath(hub.ID(), 1)
	body := func(degrees int) string {
		return fmt.Sprintf(`{"key":"heating_setpoint","value":%d}`, degrees)
	}
	// A busy machine may answer 504, which is retried as in the contract.
	send := func(degrees int) harness.Answer {
		t.Helper()
		for {
			answer, err := tenant.Try(http.MethodPost, path, body(degrees), keyHeader, "window")
			harness.Must(t, err)
			if answer.Status != http.StatusGatewayTimeout {
				return answer
			}
		}
	}
	began := time.Now()
	if answer := send(20); answer.Status != http.StatusAccepted {
		t.Fatalf("first command: got %d %s, want 202", answer.Status, answer.Body)
	}
	if answer := send(21); answer.Status != http.StatusConflict &&
		time.Since(began) < 6*time.Second {
		t.Fatalf("same key within the window: got %d %s, want 409", answer.Status, answer.Body)
	}
	streamstest.Eventually(t, "the key is unused again",
		func() bool { return send(21).Status == http.StatusAccepted },
	)
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("got the key unused after %s", took)
	}
}

// invitationExpiry tests "pending, 7 days elapse: expired", with eight seconds.
func invitationExpiry(t *testing.T, c *harness.Target) {
	s := c.OwnService()
	tenant := c.Tenant("Expiry")
	const email = "late@expiry.example.com"
	var made invitation
	began := time.Now()
	tenant.Create("/invitations", map[string]string{"email": email}).JSON(t, &made)
	if !pending(tenant, made.ID) && time.Since(began) < 8*time.Second {
		t.Error("new invitation: not listed, want it pending")
	}
	link := s.Mails(email, 1)[0].Link()
	streamstest.Eventually(t, "no longer listed", func() bool { return !pending(tenant, made.ID) })
	expectDeadLink(t, tenant, link, email)
	tenant.Rejected(http.MethodDelete, "/invitations/"+made.ID, nil, "not_found")
	// The person can be invited again. On a busy machine that invitation may expire too.
	streamstest.Eventually(t, "a second invitation works", func() bool {
		_, link := invite(s, tenant, email, "admin")
		return harness.Open(t, http.MethodGet, link).Status == http.StatusOK
	})
	if m, ok := memberOf(tenant, email); !ok || m.Role != "admin" {
		t.Errorf("got %+v, want an admin", m)
	}
}
