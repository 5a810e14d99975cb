package client

import (
	"context"
	"strconv"
	"time"
)

// Credential is a code of a lock. One that was set at the lock has a Slot only.
type Credential struct {
	Slot int64 `json:"slot"`
	// Label is whose code it is.
	Label *string `json:"label"`
	// Source is api or lock.
	Source string `json:"source"`
	// State is pending, active, failed or revoked, and Reason why the lock has rejected it, which
	// Message says to people.
	State      string       `json:"state"`
	Reason     *string      `json:"reason"`
	Message    *string      `json:"message"`
	ValidFrom  *time.Time   `json:"valid_from"`
	ValidUntil *time.Time   `json:"valid_until"`
	TimeZone   *string      `json:"time_zone"`
	Schedule   []WeeklyTime `json:"schedule"`
	CreatedAt  *time.Time   `json:"created_at"`
	UpdatedAt  *time.Time   `json:"updated_at"`
	// Code is the code. Only the first answer to the request that sets it has it.
	Code string `json:"code,omitempty"`
}

// WeeklyTime is a time of day, such as 08:00 to 17:00, on days of the week: mon, tue, and so on.
type WeeklyTime struct {
	Days  []string `json:"days"`
	From  string   `json:"from"`
	Until string   `json:"until"`
}

// Credentials are the codes of a lock.
type Credentials struct {
	Data []Credential `json:"data"`
	// Capacity is how many codes the lock has room for; nil if it could not be asked. Complete is
	// then false, and codes that were set at the lock are missing.
	Capacity *int64 `json:"capacity"`
	Complete bool   `json:"complete"`
}

// CredentialRequest is a new code, or a change of one. Empty fields are left out: a code is made, a
// slot chosen, and what a code has stays.
type CredentialRequest struct {
	Slot  int64  `json:"slot,omitempty"`
	Label string `json:"label,omitempty"`
	// Code is 4 to 10 digits.
	Code string `json:"code,omitempty"`
	// ValidFrom and ValidUntil are times such as 2026-01-02T03:04:05Z, or 2026-01-02T03:04 in
	// TimeZone.
	ValidFrom  string `json:"valid_from,omitempty"`
	ValidUntil string `json:"valid_until,omitempty"`
	// TimeZone is an IANA name such as Europe/Berlin.
	TimeZone string       `json:"time_zone,omitempty"`
	Schedule []WeeklyTime `json:"schedule,omitempty"`
}

// CredentialTarget names a lock.
type CredentialTarget struct {
	HubID    string `json:"hub_id"`
	DeviceID int64  `json:"device_id"`
}

// SentCredentials is the answer about one code for several locks.
type SentCredentials struct {
	Label string `json:"label"`
	Code  string `json:"code,omitempty"`
	Data  []struct {
		CredentialTarget
		Slot  *int64        `json:"slot"`
		State *string       `json:"state"`
		Error *CommandError `json:"error"`
	} `json:"data"`
}

func credentialsRoute(hubID string, deviceID int64, rest ...string) string {
	segments := []string{"hubs", hubID, "devices", strconv.FormatInt(deviceID, 10), "credentials"}
	return route(append(segments, rest...)...)
}

// Credentials returns the codes of a lock. Scope credentials:read. Returns ErrNotFound.
func (c *Client) Credentials(
	ctx context.Context, hubID string, deviceID int64,
) (Credentials, error) {
	return get[Credentials](ctx, c, credentialsRoute(hubID, deviceID))
}

// Credential returns a code of a lock. Scope credentials:read. Returns ErrNotFound.
func (c *Client) Credential(
	ctx context.Context, hubID string, deviceID, slot int64,
) (Credential, error) {
	return get[Credential](ctx, c, credentialsRoute(hubID, deviceID, strconv.FormatInt(slot, 10)))
}

// CreateCredential sets a code of a lock, which the result has. Scope credentials:write. If the first
// answer is lost, the result of the retry has no code. Returns ErrNotFound, ErrInvalidRequest.
func (c *Client) CreateCredential(
	ctx context.Context, hubID string, deviceID int64, r CredentialRequest,
) (Credential, error) {
	return create[Credential](ctx, c, credentialsRoute(hubID, deviceID), r)
}

// CreateCredentials sets one code at several locks. Scope credentials:write.
func (c *Client) CreateCredentials(
	ctx context.Context, locks []CredentialTarget, r CredentialRequest,
) (SentCredentials, error) {
	return create[SentCredentials](ctx, c, route("credentials"), struct {
		CredentialRequest
		Locks []CredentialTarget `json:"channels"`
	}{r, locks})
}

// UpdateCredential changes a code of a lock. Scope credentials:write. Returns ErrNotFound.
func (c *Client) UpdateCredential(
	ctx context.Context, hubID string, deviceID, slot int64, r CredentialRequest,
) (Credential, error) {
	r.Slot = 0
	return change[Credential](
		ctx, c, credentialsRoute(hubID, deviceID, strconv.FormatInt(slot, 10)), r,
	)
}

// RevokeCredential revokes a code of a lock. Scope credentials:write. Returns ErrNotFound.
func (c *Client) RevokeCredential(
	ctx context.Context, hubID string, deviceID, slot int64,
) error {
	return c.remove(ctx, credentialsRoute(hubID, deviceID, strconv.FormatInt(slot, 10)))
}
