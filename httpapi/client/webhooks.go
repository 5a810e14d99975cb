package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Webhook is an address that the service posts the organization's events to.
type Webhook struct {
	ID string `json:"id"`
	// Name is what people call it; may be empty.
	Name   string        `json:"name"`
	URL    string        `json:"url"`
	Filter WebhookFilter `json:"filter"`
	// Status is enabled or disabled. DisabledBy is request, failing or gone; nil if it is enabled.
	Status     string     `json:"status"`
	DisabledBy *string    `json:"disabled_by"`
	DisabledAt *time.Time `json:"disabled_at"`
	CreatedAt  time.Time  `json:"created_at"`
	// FormerSecretsExpireAt is when each former secret expires.
	FormerSecretsExpireAt []time.Time `json:"former_secrets_expire_at"`
	// Delivery is nil in lists, and in the result of CreateWebhook.
	Delivery *WebhookProgress `json:"delivery,omitempty"`
	// Secret signs the requests. It is set by CreateWebhook and RotateWebhookSecret only.
	Secret string `json:"secret,omitempty"`
}

// WebhookFilter chooses events, as the filter of a feed does. Empty lists choose all.
type WebhookFilter struct {
	SiteIDs []string    `json:"site_id"`
	HubIDs  []string    `json:"hub_id"`
	Types   []EventType `json:"type"`
}

// lists returns the filter without nil lists, which JSON has no list for.
func (f WebhookFilter) lists() *WebhookFilter {
	return &WebhookFilter{
		append([]string{}, f.SiteIDs...), append([]string{}, f.HubIDs...),
		append([]EventType{}, f.Types...),
	}
}

// WebhookProgress is how far the deliveries of a webhook have come.
type WebhookProgress struct {
	// Position is the position of the feed up to which everything was delivered; nil if nothing was.
	Position      *string    `json:"position"`
	FailingSince  *time.Time `json:"failing_since"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
}

// WebhookDelivery is a request to a webhook's address.
type WebhookDelivery struct {
	// MessageID is the header webhook-id.
	MessageID string    `json:"message_id"`
	At        time.Time `json:"at"`
	Events    int       `json:"events"`
	Attempt   int       `json:"attempt"`
	Delivered bool      `json:"delivered"`
	// Status is the status of the answer; nil for none. Error is nil if it was delivered.
	Status     *int    `json:"status"`
	DurationMS int64   `json:"duration_ms"`
	Error      *string `json:"error"`
}

// WebhookUpdate is a change of a webhook. Fields that are nil stay as they are.
type WebhookUpdate struct {
	Name    *string
	URL     *string
	Filter  *WebhookFilter
	Enabled *bool
}

// webhookBody is what is sent of a new webhook or a change.
type webhookBody struct {
	Name    *string        `json:"name,omitempty"`
	URL     *string        `json:"url,omitempty"`
	Filter  *WebhookFilter `json:"filter,omitempty"`
	Enabled *bool          `json:"enabled,omitempty"`
}

// Webhooks lists the organization's webhooks, oldest first. Scope webhooks:read.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[Webhook, error] {
	return all(func(after string) (Page[Webhook], error) {
		return page[Webhook](
			ctx, c, route("webhooks"), PageQuery{StartingAfter: after}.values(),
		)
	}, func(w Webhook) string { return w.ID })
}

// CreateWebhook creates a webhook, of which the result has the secret. Scope webhooks:write. It
// sends an idempotency key, so that a retry does not create a second webhook.
func (c *Client) CreateWebhook(
	ctx context.Context, name, url string, filter WebhookFilter,
) (Webhook, error) {
	return create[Webhook](
		ctx, c, route("webhooks"), webhookBody{Name: &name, URL: &url, Filter: filter.lists()},
	)
}

// Webhook returns a webhook. Scope webhooks:read. Returns ErrNotFound.
func (c *Client) Webhook(ctx context.Context, webhookID string) (Webhook, error) {
	return get[Webhook](ctx, c, route("webhooks", webhookID))
}

// UpdateWebhook changes a webhook. Scope webhooks:write. Returns ErrNotFound.
func (c *Client) UpdateWebhook(
	ctx context.Context, webhookID string, update WebhookUpdate,
) (Webhook, error) {
	body := webhookBody{Name: update.Name, URL: update.URL, Enabled: update.Enabled}
	if update.Filter != nil {
		body.Filter = update.Filter.lists()
	}
	return change[Webhook](ctx, c, route("webhooks", webhookID), body)
}

// DeleteWebhook deletes a webhook. Scope webhooks:write. Returns ErrNotFound.
func (c *Client) DeleteWebhook(ctx context.Context, webhookID string) error {
	return c.remove(ctx, route("webhooks", webhookID))
}

// WebhookDeliveries returns the last requests to a webhook, newest first. Scope webhooks:read.
func (c *Client) WebhookDeliveries(
	ctx context.Context, webhookID string,
) ([]WebhookDelivery, error) {
	p, err := page[WebhookDelivery](ctx, c, route("webhooks", webhookID, "deliveries"), nil)
	return p.Data, err
}

// TestWebhook posts a test event, and returns what became of it. Scope webhooks:write.
func (c *Client) TestWebhook(ctx context.Context, webhookID string) (WebhookDelivery, error) {
	return postOnce[WebhookDelivery](ctx, c, route("webhooks", webhookID, "test"), nil)
}

// ReplayWebhook makes a webhook go on after a position of the feed. Scope webhooks:write.
func (c *Client) ReplayWebhook(ctx context.Context, webhookID, after string) (Webhook, error) {
	return postOnce[Webhook](
		ctx, c, route("webhooks", webhookID, "replay"), map[string]string{"after": after},
	)
}

// ReplayWebhookSince makes a webhook go on with the first event that was stored at a time or later.
// Scope webhooks:write.
func (c *Client) ReplayWebhookSince(
	ctx context.Context, webhookID string, since time.Time,
) (Webhook, error) {
	return postOnce[Webhook](
		ctx, c, route("webhooks", webhookID, "replay"), map[string]time.Time{"since": since},
	)
}

// RotateWebhookSecret replaces the secret of a webhook; the result has the new one. Requests are
// signed with the former one too for the time overlap. Scope webhooks:write.
func (c *Client) RotateWebhookSecret(
	ctx context.Context, webhookID string, overlap time.Duration,
) (Webhook, error) {
	body := map[string]int64{"overlap_seconds": int64(overlap / time.Second)}
	return postOnce[Webhook](ctx, c, route("webhooks", webhookID, "rotate-secret"), body)
}

// postOnce posts a request that is not repeated when its answer is lost.
func postOnce[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return ask[T](ctx, c, call{method: http.MethodPost, path: path, body: body, once: true})
}
