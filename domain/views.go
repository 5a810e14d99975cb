package domain

import (
	"encoding/json"
	"time"
)

// The views in this file are shared between goroutines. Callers must not change what they point to.

// Page is one page of a list.
type Page[T any] struct {
	// Data is never nil.
	Data []T
	// HasMore is whether more items follow.
	HasMore bool
}

// Site is a site as its organization sees it.
type Site struct {
	ID       string
	Name     string
	HubCount int
	// CreatedAt is in UTC.
	CreatedAt time.Time
}

// Hub is a hub as its organization sees it. Lists leave out PublicIP, DisconnectReason, Firmware
// and Network.
type Hub struct {
	ID     HubID
	Name   *string
	SiteID string
	// Status is unknown until the hub connects for the first time after it was added, unless it was
	// connected then.
	Status HubStatus
	// Since is when Status last changed, in UTC, never before AddedAt.
	Since time.Time
	// PublicIP is the address that the hub last connected from; nil if unknown.
	PublicIP *string
	// DisconnectReason is the broker's, in lower case; nil while online, and if it gave none.
	DisconnectReason *string
	// Firmware and Network are JSON objects in the contract's form; nil until the hub has connected
	// once.
	Firmware json.RawMessage
	Network  json.RawMessage
	// AddedAt is when the organization added the hub, in UTC.
	AddedAt time.Time
	// ChannelsOmitted reports whether the hub has more channels than are kept. Only single reads have
	// it.
	ChannelsOmitted bool
}

// Member is a person in an organization, as the organization sees it.
type Member struct {
	ID string
	// Email is the address as entered.
	Email string
	Role  Role
	// JoinedAt is in UTC.
	JoinedAt time.Time
}

// InvitationStatus is the status of an invitation.
type InvitationStatus string

// The statuses of the contract.
const (
	InvitationPending  InvitationStatus = "pending"
	InvitationAccepted InvitationStatus = "accepted"
	InvitationRevoked  InvitationStatus = "revoked"
	InvitationExpired  InvitationStatus = "expired"
)

// Invitation is an invitation of a person to an organization, as the organization sees it.
type Invitation struct {
	ID string
	// Email is the address as entered; the link is sent there.
	Email string
	// Role is the role after acceptance: RoleAdmin or RoleMember.
	Role   Role
	Status InvitationStatus
	// CreatedAt and ExpiresAt are in UTC; the link works until ExpiresAt.
	CreatedAt time.Time
	ExpiresAt time.Time
}

// DeviceLabel is the name and room of a device that were set through the API; nil if not set.
type DeviceLabel struct {
	Name *string
	Room *string
}

// KeyAccess is what the service needs of an API key to authorize a request. Revoked keys have none.
type KeyAccess struct {
	ID string
	// Reach is what the key reaches. Handlers must pass it on whole.
	Reach Reach
	// Environment is `live` or `dev`.
	Environment string
	Scopes      []Scope
	// ExpiresAt is when the key stops working; zero for never.
	ExpiresAt time.Time
	// SecretHash is the SHA-256 of the key's secret part, and Former are secrets that still work.
	SecretHash [32]byte
	Former     []KeySecret
	// Revoked is closed when the key is revoked, or changed. Streams opened with it end then.
	Revoked <-chan struct{}
}

// HubAccess is what the service needs of a hub to read its event log. Hubs without an organization
// have none.
type HubAccess struct {
	OrgID  string
	SiteID string
	Epoch  Epoch
}

// MemberAccess is what the service needs of a member to authorize a person in an organization.
// Removed members have none.
type MemberAccess struct {
	OrgID   string
	OrgName string
	// MemberID is the actor of the person's changes in the organization.
	MemberID string
	// Email is the address as entered.
	Email string
	Role  Role
	// Ended is closed when the membership ends. Streams opened with it end then.
	Ended <-chan struct{}
}

// Manages reports whether the member may manage the organization's people, keys, sites and hubs.
func (m MemberAccess) Manages() bool { return m.Role == RoleOwner || m.Role == RoleAdmin }

// KeyView is an API key as its organization sees it. The secret is not stored.
type KeyView struct {
	ID          string
	Label       string
	Environment string
	Scopes      []Scope
	KeyLimits
	// FormerUntil is when the last of the secrets stops working that the key had before; zero if it
	// was not rotated.
	FormerUntil time.Time
	CreatedAt   time.Time
	// RevokedAt is zero while the key is valid.
	RevokedAt time.Time
}

// Expired reports whether the key has stopped working.
func (k KeyView) Expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}
