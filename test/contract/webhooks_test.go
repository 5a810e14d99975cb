package contract

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// hook is a webhook as the API answers.
type hook struct {
	ID, Status, Secret string
	DisabledBy         *string `json:"disabled_by"`
	Delivery           *struct {
		Position     *string
		FailingSince *string `json:"failing_since"`
	}
}

// hookReceiver verifies requests with the official library.
type hookReceiver struct {
	*httptest.Server
	mu sync.Mutex
	// secret is what it verifies with, and status what it answers.
	secret   string
	status   int
	wrong    []error
	cursors  []string
	types    []string
	position string
}

func newHookReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.status < 300 {
		err = r.take(req.Header, body)
	}
	if err != nil {
		r.wrong = append(r.wrong, err)
	}
	w.WriteHeader(r.status)
}

func (r *hookReceiver) take(header http.Header, body []byte) error {
	verifier, err := standardwebhooks.NewWebhook(r.secret)
	if err != nil {
		return err
	}
	if err := verifier.Verify(body, header); err != nil {
		return err
	}
	var content struct {
		Data []struct {
			Cursor, Type string
			HubID        string `json:"hub_id"`
		}
		Position string
	}
	if err := json.Unmarshal(body, &content); err != nil {
		return err
	}
	for _, e := range content.Data {
		r.types = append(r.types, e.Type)
		if e.Type == "channel.observed" {
			r.cursors = append(r.cursors, e.Cursor)
		}
	}
	r.position = content.Position
	return nil
}

// set changes the receiver, and forgets what it has got.
func (r *hookReceiver) set(secret string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret, r.status, r.cursors, r.types = secret, status, nil, nil
}

// await waits until the receiver has got what it was sent.
func (r *hookReceiver) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	streamstest.Eventually(t, what, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return done()
	})
}

// webhooks tests /v1/webhooks, which is an addition to the contract.
func webhooks(t *testing.T, c *harness.Target) {
	t.Run("deliveries", func(t *testing.T) { t.Parallel(); webhookDeliveries(t, c.For(t)) })
	t.Run("rejections", func(t *testing.T) { t.Parallel(); webhookRejections(t, c.For(t)) })
}

func webhookDeliveries(t *testing.T, c *harness.Target) {
	c.OwnService() // another one may not reach the receiver
	client := c.Tenant("Webhooks")
	hub := c.Online(client)
	r := newHookReceiver(t)
	send := func(method, path, body string, status int) (w hook) {
		t.Helper()
		var sent any
		if body != "" {
			sent = body
		}
		answer := client.Must(method, "/webhooks"+path, sent, status, "Idempotency-Key", "one")
		if len(answer.Body) > 0 {
			answer.JSON(t, &w)
		}
		return w
	}
	create := `{"name":"Test","url":"` + r.URL + `","filter":{"hub_id":["` + hub.ID + `"]}}`
	w := send(http.MethodPost, "", create, http.StatusCreated)
	if again := send(http.MethodPost, "", create, http.StatusCreated); again != w ||
		!strings.HasPrefix(w.Secret, "whsec_") {
		t.Errorf("created twice with one key: got %+v and %+v, want the same", w, again)
	}
	client.Rejected(
		http.MethodPost, "/webhooks", `{"url":"`+r.URL+`"}`, "idempotency_conflict",
		"Idempotency-Key", "one",
	)
	one := "/" + w.ID
	r.set(w.Secret, http.StatusNoContent)
	client.Must(http.MethodPost, "/webhooks"+one+"/test", nil, http.StatusOK)
	r.await(t, "the test", func() bool { return slices.Contains(r.types, "webhook.test") })

	hub.EventsFrom("log-1", 1, 150)
	hub.WaitAck("log-1", 150)
	var wanted []string
	for _, e := range client.AllEvents(hub.ID, "") {
		if e.Type == "channel.observed" {
			wanted = append(wanted, e.Cursor)
		}
	}
	r.await(t, "all events, in order", func() bool { return slices.Equal(r.cursors, wanted) })
	streamstest.Eventually(t, "the position is stored", func() bool {
		got := send(http.MethodGet, one, "", http.StatusOK)
		r.mu.Lock()
		defer r.mu.Unlock()
		return got.Delivery.Position != nil && got.Secret == "" && *got.Delivery.Position >= r.position
	})

	// Failures are tried again, and shown.
	r.set(w.Secret, http.StatusServiceUnavailable)
	hub.EventsFrom("log-1", 151, 152)
	streamstest.Eventually(t, "the failure is shown", func() bool {
		return send(http.MethodGet, one, "", http.StatusOK).Delivery.FailingSince != nil
	})
	var list struct {
		Data []struct {
			Delivered bool
			Status    int
		}
	}
	client.Get("/webhooks"+one+"/deliveries").JSON(t, &list)
	if len(list.Data) == 0 || list.Data[0].Delivered || list.Data[0].Status != 503 {
		t.Errorf("deliveries: got %+v, want a rejection with 503 first", list.Data)
	}

	// During the overlap both secrets verify, and a replay brings everything again.
	rotated := send(http.MethodPost, one+"/rotate-secret", `{"overlap_seconds":600}`, http.StatusOK)
	for _, secret := range []string{w.Secret, rotated.Secret} {
		r.set(secret, http.StatusOK)
		since := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
		send(http.MethodPost, one+"/replay", `{"since":"`+since+`"}`, http.StatusOK)
		r.await(t, "everything again", func() bool { return len(r.cursors) >= 152 })
	}
	send(http.MethodPost, one+"/replay", `{"after":"`+r.position+`"}`, http.StatusOK)

	// A receiver that wants no more events disables the webhook.
	r.set(rotated.Secret, http.StatusGone)
	hub.EventsFrom("log-1", 153, 153)
	streamstest.Eventually(t, "the webhook is disabled", func() bool {
		got := send(http.MethodGet, one, "", http.StatusOK)
		return got.Status == "disabled" && *got.DisabledBy == "gone"
	})
	r.set(rotated.Secret, http.StatusOK)
	send(http.MethodPatch, one, `{"enabled":true}`, http.StatusOK)
	r.await(t, "it goes on from its position", func() bool { return len(r.cursors) == 1 })
	client.Delete("/webhooks" + one)
	if len(r.wrong) > 0 {
		t.Errorf("requests that the official library rejects: %v", r.wrong)
	}
}

func webhookRejections(t *testing.T, c *harness.Target) {
	client := c.Tenant("Webhook rejections")
	var w hook
	client.Create("/webhooks", `{"url":"https://example.org/"}`).JSON(t, &w)
	var list struct{ Data []hook }
	client.Get("/webhooks?limit=1").JSON(t, &list)
	if len(list.Data) != 1 || list.Data[0].ID != w.ID || list.Data[0].Secret != "" {
		t.Errorf("list: got %+v, want the webhook without its secret", list)
	}
	large := strings.Repeat(" ", 64<<10+1)
	client.Rejected(http.MethodGet, "/webhooks?starting_after="+noSite, nil, "invalid_request")
	for _, body := range []string{
		large, `{}`, `{"url":"ftp://example.org/"}`, `{"url":"https://a:b@example.org/"}`,
		`{"url":"https://example.org/","filter":{"type":[1]}}`,
		`{"url":"https://example.org/","filter":{"hub_id":["x"]}}`,
	} {
		client.Rejected(http.MethodPost, "/webhooks", body, "invalid_request")
	}
	for _, route := range []struct{ method, path, body string }{
		{http.MethodGet, "", ""}, {http.MethodPatch, "", `{"name":"x"}`},
		{http.MethodDelete, "", ""}, {http.MethodGet, "/deliveries", ""},
		{http.MethodPost, "/test", ""}, {http.MethodPost, "/rotate-secret", `{}`},
		{http.MethodPost, "/replay", `{"since":"` + time.Now().UTC().Format(time.RFC3339) + `"}`},
	} {
		client.Rejected(route.method, "/webhooks/"+w.ID+route.path, large, "invalid_request")
		var body any
		if route.body != "" {
			body = route.body
		}
		client.Rejected(route.method, "/webhooks/"+noSite+route.path, body, "not_found")
	}
	for range 19 {
		client.Create("/webhooks", `{"url":"https://example.org/"}`)
	}
	answer, err := client.Do(http.MethodPost, "/webhooks", `{"url":"https://example.org/"}`)
	if err != nil || answer.Status != http.StatusTooManyRequests ||
		!strings.Contains(answer.APIError().Message, "20 webhooks") {
		t.Errorf("the 21st webhook: got %d %s, %v, want 429", answer.Status, answer.Body, err)
	}
}
