package domain

import (
	"encoding/json"
	"time"
)

// Views are what the service's readers get: copies for reading only, shared between goroutines, so
// nobody may change what they point to.

// Page is one page of a list.
type Page[T any] struct {
	// Data is never nil.
	Data []T
	// HasMore says that items follow the last of Data.
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
	// Status is unknown until the hub has connected after it was added, unless it was connected at
	// that moment.
	Status HubStatus
	// Since is when Status last changed, in UTC, never before RegisteredAt.
	Since time.Time
	// PublicIP is the address that the hub last connected from; nil when it has not, or the broker
	// did not say.
	PublicIP *string
	// DisconnectReason is the broker's, in lower case; nil while online, and when there was none.
	DisconnectReason *string
	// Firmware and Network are JSON objects as the contract writes them; nil until the hub has
	// connected once.
	Firmware json.RawMessage
	Network  json.RawMessage
	// RegisteredAt is when the organization added it, in UTC.
	RegisteredAt time.Time
}

// Member is a person in an organization, as the organization sees it.
type Member struct {
	ID string
	// Email as it was given.
	Email string
	Role  Role
	// JoinedAt is in UTC.
	JoinedAt time.Time
}

// InvitationStatus is where an invitation stands.
type InvitationStatus string

// The statuses of the contract.
const (
	InvitationPending  InvitationStatus = "pending"
	InvitationAccepted InvitationStatus = "accepted"
	InvitationRevoked  InvitationStatus = "revoked"
	InvitationExpired  InvitationStatus = "expired"
)

// Invitation asks a person to join an organization.
type Invitation struct {
	ID string
	// Email as it was given: where the link goes.
	Email string
	// Role is what the person becomes: RoleAdmin or RoleMember.
	Role   Role
	Status InvitationStatus
	// CreatedAt and ExpiresAt are in UTC; from ExpiresAt on the link works no more.
	CreatedAt time.Time
	ExpiresAt time.Time
}

// DeviceLabel is what was set of a device through the API; nil is what was not set. The zero value
// is no label.
type DeviceLabel struct {
	Name *string
	Room *string
}

// KeyAccess is what the service must know of an API key to let a request in. Revoked keys have
// none.
type KeyAccess struct {
	ID    string
	OrgID string
	// Environment is `live` or `dev`.
	Environment string
	Scopes      []Scope
	// SecretHash is the SHA-256 of the key's secret part.
	SecretHash [32]byte
	// Revoked is closed when the key is revoked: whatever was opened with it ends then.
	Revoked <-chan struct{}
}

// HubAccess is what the service must know of a hub to read its event log. Hubs without an
// organization have none.
type HubAccess struct {
	OrgID string
	Epoch Epoch
}

// MemberAccess is what the service must know of a member to let a person into an organization. A
// member who was removed has none.
type MemberAccess struct {
	OrgID   string
	OrgName string
	// MemberID is who acts when the person does something in the organization.
	MemberID string
	// Email as it was given.
	Email string
	Role  Role
	// Ended is closed when the membership ends: whatever was opened with it ends then.
	Ended <-chan struct{}
}

// Manages says whether the member manages the organization: its people, keys, sites and hubs.
func (m MemberAccess) Manages() bool { return m.Role == RoleOwner || m.Role == RoleAdmin }

// KeyView is an API key as its organization sees it. The secret is kept nowhere.
type KeyView struct {
	ID          string
	Label       string
	Environment string
	Scopes      []Scope
	CreatedAt   time.Time
	// RevokedAt is zero while the key is in force.
	RevokedAt time.Time
}

// ActivityRetention is how long what happened in an organization can be read. The directory keeps
// the facts for ever.
const ActivityRetention = 365 * 24 * time.Hour

// Activity is one thing that somebody did in an organization, as the directory has it.
type Activity struct {
	// Sequence is the event's in the directory: the order of what happened.
	Sequence uint64
	At       time.Time
	// Type is one of the Type… constants.
	Type string
	// Actor is who did it, and ActorName what that one is called now: a member's address, a key's
	// label.
	Actor     Actor
	ActorName string
	// SubjectID is what it was done to, and SubjectName what that is called now; a device's id is
	// its number.
	SubjectID   string
	SubjectName string
	// Hub is the hub that SubjectID is a device of; empty otherwise.
	Hub HubID
	// Detail is what the subject became: a role, a name, a room.
	Detail string
}
