package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"hubcloud/domain"
)

// webhookBody is a webhook. Delivery is absent in lists.
type webhookBody struct {
	ID     string      `json:"id"`
	Name   string      `json:"name"`
	URL    string      `json:"url"`
	Filter eventFilter `json:"filter"`
	// Status is enabled or disabled.
	Status        string                      `json:"status"`
	DisabledBy    *domain.WebhookDisableCause `json:"disabled_by"`
	DisabledAt    *string                     `json:"disabled_at"`
	CreatedAt     string                      `json:"created_at"`
	SecretExpires []string                    `json:"former_secrets_expire_at"`
	Delivery      *webhookProgressBody        `json:"delivery,omitempty"`
	// Secret is present in the answers to creation and rotation only.
	Secret string `json:"secret,omitempty"`
}

// eventFilter is a domain.EventFilter in which empty lists are present.
type eventFilter struct {
	Sites []string       `json:"site_id"`
	Hubs  []domain.HubID `json:"hub_id"`
	Types []string       `json:"type"`
}

type webhookProgressBody struct {
	// Position is null until something was delivered.
	Position      *string `json:"position"`
	FailingSince  *string `json:"failing_since"`
	NextAttemptAt *string `json:"next_attempt_at"`
}

// webhookDeliveryBody is a request to a webhook.
type webhookDeliveryBody struct {
	MessageID  string `json:"message_id"`
	At         string `json:"at"`
	Events     int    `json:"events"`
	Attempt    int    `json:"attempt"`
	Delivered  bool   `json:"delivered"`
	Status     *int   `json:"status"`
	DurationMS int64  `json:"duration_ms"`
	// Error is null for a request that the receiver has taken.
	Error *string `json:"error"`
}

func newWebhookBody(w domain.Webhook) webhookBody {
	body := webhookBody{
		ID: w.ID, Name: w.Name, URL: w.URL, Status: "enabled",
		Filter: eventFilter{
			orEmpty(w.Filter.Sites), orEmpty(w.Filter.Hubs), orEmpty(w.Filter.Types),
		},
		CreatedAt: domain.FormatTime(w.CreatedAt), SecretExpires: []string{},
	}
	if !w.Enabled() {
		body.Status, body.DisabledBy = "disabled", &w.DisabledBy
		body.DisabledAt = timeOrNull(w.DisabledAt)
	}
	for _, former := range w.Secrets[1:] {
		body.SecretExpires = append(body.SecretExpires, domain.FormatTime(former.Until))
	}
	return body
}

func orEmpty[T any](list []T) []T { return append([]T{}, list...) }

// timeOrNull returns a time in the contract's form, nil for the zero time.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := domain.FormatTime(t)
	return &text
}

func newWebhookDeliveryBody(d domain.WebhookDelivery) webhookDeliveryBody {
	body := webhookDeliveryBody{
		MessageID: d.MessageID, At: domain.FormatTime(d.At), Events: d.Events, Attempt: d.Attempt,
		Delivered: d.Error == "", DurationMS: d.Duration.Milliseconds(),
	}
	if d.Status != 0 {
		body.Status = &d.Status
	}
	if d.Error != "" {
		body.Error = &d.Error
	}
	return body
}

func (a *api) webhookRoutes() []*route {
	const read, write = domain.ScopeWebhooksRead, domain.ScopeWebhooksWrite
	const one = "/v1/webhooks/{webhook_id}"
	on := func(handle func(*request, string) error) func(*request) error {
		return onID("webhook_id", domain.ErrWebhookNotFound, func(req *request, id string) error {
			if req.key.Reach.Limited() {
				all, err := a.allWebhooks(req)
				if err != nil {
					return err
				}
				if _, err := all.Get(id); err != nil {
					id = domain.NoID
				}
			}
			return handle(req, id)
		})
	}
	return []*route{
		keyRoute("GET", "/v1/webhooks", read, a.listWebhooks, takes("limit", "starting_after")),
		keyRoute("POST", "/v1/webhooks", write, a.createWebhook, readsBody),
		keyRoute("GET", one, read, on(a.getWebhook)),
		keyRoute("PATCH", one, write, on(a.updateWebhook), readsBody),
		keyRoute("DELETE", one, write, on(a.deleteWebhook)),
		keyRoute("GET", one+"/deliveries", read, on(a.listWebhookDeliveries)),
		keyRoute("POST", one+"/test", write, on(a.testWebhook)),
		keyRoute("POST", one+"/replay", write, on(a.replayWebhook), readsBody),
		keyRoute("POST", one+"/rotate-secret", write, on(a.rotateWebhook), readsBody),
	}
}

func (a *api) listWebhooks(req *request) error {
	limit, after, err := req.readListQuery("webhooks")
	if err != nil {
		return err
	}
	all, err := a.allWebhooks(req)
	if err != nil {
		return err
	}
	if after != "" {
		i := slices.IndexFunc(all, func(w domain.Webhook) bool { return w.ID == after })
		if i < 0 {
			return invalid("starting_after: must be an id from the list of webhooks")
		}
		all = all[i+1:]
	}
	page := domain.Page[domain.Webhook]{Data: all[:min(limit, len(all))], HasMore: len(all) > limit}
	return req.answer(http.StatusOK, listOf(page, newWebhookBody), nil)
}

// createWebhook creates a webhook and shows its secret. A stored answer to an Idempotency-Key has no
// secret: it is added each time, as long as it was not replaced.
func (a *api) createWebhook(req *request) error {
	key, err := req.idempotencyKey()
	if err != nil {
		return err
	}
	body := req.readFields("name", "url", "filter")
	change := a.readWebhookChange(body)
	body.require(change.URL != nil, invalid("url: is required"))
	if body.err != nil {
		return body.err
	}
	target := domain.WebhookTarget{URL: *change.URL}
	if change.Name != nil {
		target.Name = *change.Name
	}
	if change.Filter != nil {
		target.Filter = *change.Filter
	}
	if target.Filter, err = req.key.Reach.LimitFilter(target.Filter); err != nil {
		return err
	}
	created, err := onceAs(
		req, key, target, func(ctx context.Context, id string) (body webhookBody, err error) {
			w, err := a.Directory.CreateWebhook(
				ctx, req.origin(), req.key.Reach.OrgID, id, target, a.Webhooks.Seal,
			)
			if err != nil {
				return body, err
			}
			return newWebhookBody(w), nil
		},
	)
	if err != nil {
		return err
	}
	w, err := a.webhook(req, created.ID)
	if err == nil && len(w.Secrets) == 1 {
		created.Secret, err = a.Webhooks.Reveal(w)
	}
	return req.answer(http.StatusCreated, created, err)
}

// allWebhooks returns the webhooks of the caller's organization that get nothing but what the caller
// reaches.
func (a *api) allWebhooks(req *request) (domain.WebhooksState, error) {
	all, err := a.Directory.Webhooks(req.ctx, req.key.Reach.OrgID)
	return slices.DeleteFunc(slices.Clone(all), func(w domain.Webhook) bool {
		return !req.key.Reach.HasFilter(w.Filter)
	}), err
}

// webhook returns one of them.
func (a *api) webhook(req *request, id string) (domain.Webhook, error) {
	all, err := a.allWebhooks(req)
	if err != nil {
		return domain.Webhook{}, err
	}
	return all.Get(id)
}

// answerWebhook answers with a webhook and how far its deliveries have come.
func (a *api) answerWebhook(req *request, w domain.Webhook, secret string) error {
	p, err := a.Webhooks.Progress(req.ctx, w)
	if err != nil {
		return err
	}
	body := newWebhookBody(w)
	body.Secret = secret
	body.Delivery = &webhookProgressBody{
		FailingSince: timeOrNull(p.FailingSince), NextAttemptAt: timeOrNull(p.NextAttempt),
	}
	if p.Position != "" {
		body.Delivery.Position = &p.Position
	}
	return req.writeJSON(http.StatusOK, body)
}

func (a *api) getWebhook(req *request, id string) error {
	w, err := a.webhook(req, id)
	if err != nil {
		return err
	}
	return a.answerWebhook(req, w, "")
}

func (a *api) updateWebhook(req *request, id string) error {
	body := req.readFields("name", "url", "filter", "enabled")
	change := a.readWebhookChange(body)
	if body.has("enabled") {
		enabled := read(body, "enabled", body.boolean)
		change.Enabled = &enabled
	}
	if body.err == nil && change.Filter != nil {
		*change.Filter, body.err = req.key.Reach.LimitFilter(*change.Filter)
	}
	if body.err != nil {
		return body.err
	}
	w, err := a.Directory.ChangeWebhook(req.ctx, req.origin(), req.key.Reach.OrgID, id, change)
	if err != nil {
		return err
	}
	return a.answerWebhook(req, w, "")
}

// readWebhookChange reads the fields that creation and change have in common.
func (a *api) readWebhookChange(body *fields) (change domain.WebhookChange) {
	if body.err == nil && body.has("name") {
		name := read(body, "name", func(field string) (string, error) {
			text, err := body.stringField(field)
			if err != nil {
				return "", err
			}
			return domain.CleanLabel(field, text)
		})
		change.Name = &name
	}
	if body.err == nil && body.has("url") {
		url := body.text("url")
		if body.err == nil {
			body.err = a.Webhooks.CheckURL(url)
		}
		change.URL = &url
	}
	if body.err == nil && body.has("filter") {
		filter := read(body, "filter", body.eventFilter)
		change.Filter = &filter
	}
	return change
}

// eventFilter returns a field that chooses events, as the parameters of GET /v1/events do.
func (o object) eventFilter(name string) (filter domain.EventFilter, err error) {
	inner, err := decodeObject(o[name])
	if err != nil {
		return filter, invalid("%s: must be an object", name)
	}
	known := []string{"site_id", "hub_id", "type"}
	if err := inner.allow(known); err != nil {
		return filter, invalid("%s: may have the fields site_id, hub_id and type only", name)
	}
	for _, field := range known {
		var values []string
		if raw, ok := inner[field]; ok && json.Unmarshal(raw, &values) != nil {
			return filter, invalid("%s.%s: must be an array of strings", name, field)
		}
		for _, value := range values {
			if value == "" {
				return filter, invalid("%s.%s: must not have an empty string", name, field)
			}
			if err := addToFilter(&filter, field, value); err != nil {
				return filter, err
			}
		}
	}
	return filter, nil
}

// boolean returns a required field that is true or false.
func (o object) boolean(name string) (value bool, err error) {
	switch text := string(o[name]); text {
	case "true", "false":
		return text == "true", nil
	default:
		return false, invalid("%s: must be true or false", name)
	}
}

func (a *api) deleteWebhook(req *request, id string) error {
	err := a.Directory.DeleteWebhook(req.ctx, req.origin(), req.key.Reach.OrgID, id)
	if err == nil {
		a.Webhooks.Forget(req.ctx, id)
	}
	return req.answerNothing(err)
}

func (a *api) listWebhookDeliveries(req *request, id string) error {
	w, err := a.webhook(req, id)
	if err != nil {
		return err
	}
	p, err := a.Webhooks.Progress(req.ctx, w)
	page := domain.Page[domain.WebhookDelivery]{Data: p.Deliveries}
	return req.answer(http.StatusOK, listOf(page, newWebhookDeliveryBody), err)
}

func (a *api) testWebhook(req *request, id string) error {
	w, err := a.webhook(req, id)
	if err != nil {
		return err
	}
	delivery, err := a.Webhooks.Test(req.ctx, w)
	return req.answer(http.StatusOK, newWebhookDeliveryBody(delivery), err)
}

// replayWebhook moves a webhook to a position of the feed or to a time.
func (a *api) replayWebhook(req *request, id string) error {
	body := req.readFields("after", "since")
	body.require(
		body.has("after") != body.has("since"), invalid("body: must have either after or since"),
	)
	var after string
	var since time.Time
	if body.err == nil && body.has("after") {
		after = body.text("after")
	} else {
		since = read(body, "since", body.timestamp)
		body.require(
			!since.After(req.start) && req.start.Sub(since) <= a.Retention,
			invalid("since: must be in the past, at most %s ago", domain.FormatDuration(a.Retention)),
		)
	}
	if body.err != nil {
		return body.err
	}
	if after != "" {
		// The filter does not matter for whether the position is valid.
		_, err := a.OrgEvents.Part(req.ctx, req.key.Reach, domain.EventFilter{}, after, 1, 1, 0)
		if err != nil {
			return err
		}
	} else if body.has("after") {
		return invalid("after: must not be empty")
	}
	w, err := a.Directory.ReplayWebhook(req.ctx, req.origin(), req.key.Reach.OrgID, id, after, since)
	if err != nil {
		return err
	}
	return a.answerWebhook(req, w, "")
}

// timestamp returns a required field that is a timestamp.
func (o object) timestamp(name string) (time.Time, error) {
	text, err := o.stringField(name)
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, invalid("%s: must be a timestamp such as 2026-01-02T03:04:05Z", name)
	}
	return at, nil
}

// rotateWebhook replaces the secret of a webhook, and shows the new one.
func (a *api) rotateWebhook(req *request, id string) error {
	body := req.readOptionalFields("overlap_seconds")
	if body.err != nil {
		return body.err
	}
	overlap := domain.DefaultSecretOverlap
	if body.has("overlap_seconds") {
		most := int(domain.MaxSecretOverlap / time.Second)
		var seconds int
		err := json.Unmarshal(body.object["overlap_seconds"], &seconds)
		if err != nil || seconds < 0 || seconds > most {
			return invalid("overlap_seconds: must be an integer from 0 to %d", most)
		}
		overlap = time.Duration(seconds) * time.Second
	}
	w, err := a.Directory.RotateWebhook(
		req.ctx, req.origin(), req.key.Reach.OrgID, id, a.Webhooks.Seal(id), overlap,
	)
	if err != nil {
		return err
	}
	secret, err := a.Webhooks.Reveal(w)
	if err != nil {
		return err
	}
	return a.answerWebhook(req, w, secret)
}
