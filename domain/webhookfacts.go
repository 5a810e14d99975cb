package domain

import "time"

// WebhookCreated creates a webhook (aggregate webhooks, id OrgID). Its deliveries begin with the next event to be
// stored.
type WebhookCreated struct {
	OrgID string `json:"org_id"`
	// WebhookID is a UUIDv7.
	WebhookID string `json:"webhook_id"`
	WebhookTarget
	// Secret is the sealed signing secret.
	Secret []byte `json:"secret"`
}

// WebhookChanged changes where a webhook's events go, and which.
type WebhookChanged struct {
	OrgID     string `json:"org_id"`
	WebhookID string `json:"webhook_id"`
	WebhookTarget
}

// WebhookSecretRotated replaces the signing secret of a webhook. Requests are signed with the former one
// too until FormerUntil.
type WebhookSecretRotated struct {
	OrgID       string    `json:"org_id"`
	WebhookID   string    `json:"webhook_id"`
	Secret      []byte    `json:"secret"`
	FormerUntil time.Time `json:"former_until"`
}

// WebhookEnabled enables a webhook: its deliveries go on from its position.
type WebhookEnabled struct {
	OrgID     string `json:"org_id"`
	WebhookID string `json:"webhook_id"`
}

// WebhookDisabled disables a webhook: nothing is posted until it is enabled.
type WebhookDisabled struct {
	OrgID     string              `json:"org_id"`
	WebhookID string              `json:"webhook_id"`
	Reason    WebhookDisableCause `json:"reason"`
}

// WebhookReplayed moves a webhook to another position of its organization's feed: After, or the
// first event that was stored at Since or later.
type WebhookReplayed struct {
	OrgID     string     `json:"org_id"`
	WebhookID string     `json:"webhook_id"`
	After     string     `json:"after,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

// WebhookDeleted deletes a webhook.
type WebhookDeleted struct {
	OrgID     string `json:"org_id"`
	WebhookID string `json:"webhook_id"`
}

// EventType returns the type of the event.
func (WebhookCreated) EventType() string       { return "webhook.created" }
func (WebhookChanged) EventType() string       { return "webhook.changed" }
func (WebhookSecretRotated) EventType() string { return "webhook.secret_rotated" }
func (WebhookEnabled) EventType() string       { return "webhook.enabled" }
func (WebhookDisabled) EventType() string      { return "webhook.disabled" }
func (WebhookReplayed) EventType() string      { return "webhook.replayed" }
func (WebhookDeleted) EventType() string       { return "webhook.deleted" }
