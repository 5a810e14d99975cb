package domain

import "time"

// OrgCreated creates an organization (aggregate org, id OrgID, a UUIDv7).
type OrgCreated struct {
	OrgID string `json:"org_id"`
	Name  string `json:"name"`
}

// OrgRenamed renames an organization (aggregate org).
type OrgRenamed struct {
	OrgID string `json:"org_id"`
	Name  string `json:"name"`
}

// MemberAdded makes a person a member of the organization (aggregate org).
type MemberAdded struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
	// Email is the address as entered; compare with NormalizeEmail.
	Email string `json:"email"`
	Role  Role   `json:"role"`
	// ViewOnly is whether the member, of RoleMember, may only look.
	ViewOnly bool `json:"view_only,omitempty"`
	// FromGroups is whether the person's groups at the identity provider gave the membership.
	FromGroups bool `json:"from_groups,omitempty"`
}

// MemberRoleChanged changes a member's role, or whether the member may only look (aggregate org).
type MemberRoleChanged struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
	Role     Role   `json:"role"`
	ViewOnly bool   `json:"view_only,omitempty"`
}

// MemberRemoved ends a person's membership (aggregate org). A person who joins again gets another
// id.
type MemberRemoved struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
}

// MemberInvited invites a person to the organization (aggregate org). It replaces a former
// invitation of the address.
type MemberInvited struct {
	OrgID string `json:"org_id"`
	// InvitationID is a UUIDv7.
	InvitationID string `json:"invitation_id"`
	// Email is the address as entered; compare with NormalizeEmail.
	Email string `json:"email"`
	Role  Role   `json:"role"`
	// TokenHash is the SHA-256 of the secret in the invitation's link, 32 bytes.
	TokenHash []byte `json:"token_hash"`
	// ExpiresAt is when the link stops working.
	ExpiresAt time.Time `json:"expires_at"`
	// Replaces is the pending invitation of the address that this one replaces; empty if none.
	Replaces string `json:"replaces,omitempty"`
	// ViewOnly is whether the person becomes a member who may only look.
	ViewOnly bool `json:"view_only,omitempty"`
}

// MemberInvitationRestored makes a revoked invitation pending again, with the same link (aggregate
// org). The fields are those of the invitation.
type MemberInvitationRestored struct {
	OrgID        string    `json:"org_id"`
	InvitationID string    `json:"invitation_id"`
	Email        string    `json:"email"`
	Role         Role      `json:"role"`
	TokenHash    []byte    `json:"token_hash"`
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at"`
	ViewOnly     bool      `json:"view_only,omitempty"`
}

// MemberInvitationRevoked revokes a pending invitation (aggregate org).
type MemberInvitationRevoked struct {
	OrgID        string `json:"org_id"`
	InvitationID string `json:"invitation_id"`
}

// MemberInvitationAccepted records that the member, added by the event before, accepted the
// invitation (aggregate org).
type MemberInvitationAccepted struct {
	OrgID        string `json:"org_id"`
	InvitationID string `json:"invitation_id"`
	MemberID     string `json:"member_id"`
}

// MemberNamed sets the name that the portal shows for a member (aggregate org).
type MemberNamed struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
	// Name is empty for a member who is shown by the address.
	Name string `json:"name"`
}

// ConditionSeen records that a member has seen a condition that needs attention, or several at once
// (aggregate org).
type ConditionSeen struct {
	OrgID string `json:"org_id"`
	Occurrence
	// More are the others.
	More []Occurrence `json:"more,omitempty"`
}

// ConditionUnseen records that a member has taken back that occurrences of conditions were seen
// (aggregate org).
type ConditionUnseen struct {
	OrgID       string       `json:"org_id"`
	Occurrences []Occurrence `json:"occurrences"`
}

// MailPreferencesSet records which conditions a member gets mails about (aggregate org).
type MailPreferencesSet struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
	// Topics are the topics to mail about. Without any the member gets no mails.
	Topics []MailTopic `json:"topics"`
	// Sites are the sites of the conditions; nil means all sites.
	Sites []string `json:"sites"`
	// Quiet are the hours in which mails about warnings wait; nil means none.
	Quiet *QuietHours `json:"quiet,omitempty"`
}

// AccountCreated creates a person's account (aggregate account, id AccountKey of the address).
type AccountCreated struct {
	// AccountID is a UUIDv7.
	AccountID string `json:"account_id"`
	// Email is the address as entered; compare with NormalizeEmail.
	Email string `json:"email"`
}

// AccountIdentityBound binds an account to a person at an identity provider, in place of a former
// one (aggregate account). It is stored twice: for the address, and with the id Identity.Key.
type AccountIdentityBound struct {
	AccountID string `json:"account_id"`
	// Email is the account's.
	Email string `json:"email"`
	Identity
}

// SiteCreated creates a site (aggregate site, id <org>.<site>; SiteID is a UUIDv7).
type SiteCreated struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	Name   string `json:"name"`
}

// SiteRenamed renames a site.
type SiteRenamed struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	Name   string `json:"name"`
}

// HubRegistered adds a hub to the inventory (aggregate hub, id HubID).
type HubRegistered struct {
	HubID HubID `json:"hub_id"`
	// SecretHash is the SHA-256 of the enrolment secret, 32 bytes.
	SecretHash []byte `json:"secret_hash"`
}

// HubCertificateIssued makes a certificate the hub's current one. The former one may not connect
// again.
type HubCertificateIssued struct {
	HubID HubID `json:"hub_id"`
	// Fingerprint is the SHA-256 of the certificate's DER form, 64 hexadecimal digits in lower
	// case.
	Fingerprint string    `json:"fingerprint"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// HubCertificateRevoked revokes the hub's current certificate, Fingerprint, and the superseded
// ones. Connections with them are cut.
type HubCertificateRevoked struct {
	HubID       HubID  `json:"hub_id"`
	OrgID       string `json:"org_id"`
	Fingerprint string `json:"fingerprint"`
}

// HubAdded adds a hub to an organization, at a site, and begins its event log.
type HubAdded struct {
	HubID  HubID   `json:"hub_id"`
	OrgID  string  `json:"org_id"`
	SiteID string  `json:"site_id"`
	Name   *string `json:"name"`
	// EpochID is the id of the epoch in which the hub's event log begins.
	EpochID EpochID `json:"epoch"`
	// Connected is whether the hub was connected then: its first status is online, otherwise
	// unknown.
	Connected bool `json:"connected"`
	// After is a sequence of the hub's stream: messages up to and including it belong to an
	// organization that had the hub before. Zero for a hub that no organization had.
	After uint64 `json:"after,omitempty"`
}

// Epoch returns the epoch that the hub's event log begins with.
func (f HubAdded) Epoch() Epoch { return Epoch{ID: f.EpochID, After: f.After} }

// HubMoved moves a hub to another site of its organization.
type HubMoved struct {
	HubID  HubID  `json:"hub_id"`
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
}

// HubRenamed sets or clears a hub's name.
type HubRenamed struct {
	HubID HubID   `json:"hub_id"`
	OrgID string  `json:"org_id"`
	Name  *string `json:"name"`
}

// HubLogBegun begins a new event log of a hub that was reset. Messages up to and including After
// belong to the former log and are never read again. Names and rooms of the hub's devices are
// removed.
type HubLogBegun struct {
	HubID   HubID   `json:"hub_id"`
	OrgID   string  `json:"org_id"`
	EpochID EpochID `json:"epoch"`
	// OwnLog is the hub's name for its new log, and Through the number up to which no event of it
	// is expected.
	OwnLog  string `json:"log"`
	Through uint64 `json:"through"`
	// After is a sequence of the hub's stream.
	After uint64 `json:"after"`
}

// Epoch returns the epoch that the new log begins with.
func (f HubLogBegun) Epoch() Epoch { return Epoch{ID: f.EpochID, After: f.After} }

// HubLogRestored records that the hub's event log was restored from a backup with the rest of the
// installation. Events stored after the backup are lost. What is stored from now on has another
// epoch, so that the cursor of a lost event is not taken for a new event's. Names and rooms
// stay as the backup has them.
type HubLogRestored struct {
	HubID   HubID   `json:"hub_id"`
	OrgID   string  `json:"org_id"`
	EpochID EpochID `json:"epoch"`
	// After is a sequence of the hub's stream: messages up to and including it are never
	// read again.
	After uint64 `json:"after"`
	// Former are the epoch ids of the restored events behind After.
	Former FormerEpochs `json:"former"`
}

// Epoch returns the epoch of the restored log.
func (f HubLogRestored) Epoch() Epoch { return Epoch{ID: f.EpochID, After: f.After, Former: f.Former} }

// HubSecretRotated replaces the enrolment secret of a hub (aggregate hub).
type HubSecretRotated struct {
	HubID HubID `json:"hub_id"`
	// OrgID is the organization that has the hub; empty if none has.
	OrgID string `json:"org_id,omitempty"`
	// SecretHash is the SHA-256 of the new secret, 32 bytes.
	SecretHash []byte `json:"secret_hash"`
	// KeepCertificate is whether the hub's certificates stay valid. Otherwise they are revoked.
	KeepCertificate bool `json:"keep_certificate"`
}

// HubBlocked blocks a hub from enrolling and connecting (aggregate hub).
type HubBlocked struct {
	HubID HubID `json:"hub_id"`
	// OrgID is the organization that has the hub; empty if none has.
	OrgID string `json:"org_id,omitempty"`
}

// HubUnblocked reverts HubBlocked (aggregate hub).
type HubUnblocked struct {
	HubID HubID `json:"hub_id"`
	// OrgID is the organization that has the hub; empty if none has.
	OrgID string `json:"org_id,omitempty"`
}

// HubReleased releases a hub from its organization (aggregate hub). Names and rooms of its devices
// are removed, and its event log is never read again.
type HubReleased struct {
	HubID HubID  `json:"hub_id"`
	OrgID string `json:"org_id"`
	// After is a sequence of the hub's stream: messages up to and including it belong to
	// this organization.
	After uint64 `json:"after"`
}

// DeviceLabeled sets the name and room of a device through the API (aggregate hub). It has both,
// also the one that did not change; nil is not set.
type DeviceLabeled struct {
	HubID    HubID   `json:"hub_id"`
	OrgID    string  `json:"org_id"`
	DeviceID int64   `json:"device_id"`
	Name     *string `json:"name"`
	Room     *string `json:"room"`
}

// DeviceForgotten removes the name and room of a device that the hub has forgotten (aggregate hub).
type DeviceForgotten struct {
	HubID    HubID  `json:"hub_id"`
	OrgID    string `json:"org_id"`
	DeviceID int64  `json:"device_id"`
}

// CredentialSet sets a code of a lock, or changes one (aggregate hub). It never has the code.
type CredentialSet struct {
	HubID    HubID  `json:"hub_id"`
	OrgID    string `json:"org_id"`
	DeviceID int64  `json:"device_id"`
	Slot     int64  `json:"slot"`
	// Version names the change; the code waits for the lock under it.
	Version string `json:"version"`
	CredentialTerms
}

// CredentialRevocation revokes a code (aggregate hub).
type CredentialRevocation struct {
	HubID    HubID  `json:"hub_id"`
	OrgID    string `json:"org_id"`
	DeviceID int64  `json:"device_id"`
	Slot     int64  `json:"slot"`
	// Version names the removal from the lock.
	Version string `json:"version"`
	// Removed is whether the lock never had the code.
	Removed bool `json:"removed,omitempty"`
}

// CredentialReported records what has become of a change of a code at its lock (aggregate hub).
type CredentialReported struct {
	HubID    HubID  `json:"hub_id"`
	OrgID    string `json:"org_id"`
	DeviceID int64  `json:"device_id"`
	Slot     int64  `json:"slot"`
	Version  string `json:"version"`
	// Reason is why the lock has rejected the change; empty for a success.
	Reason string `json:"reason,omitempty"`
	// Message is the hub's own about it.
	Message string `json:"message,omitempty"`
}

// KeyCreated creates an API key (aggregate key, id KeyID).
type KeyCreated struct {
	KeyID string `json:"key_id"`
	OrgID string `json:"org_id"`
	Label string `json:"label"`
	// Environment is `live` or `dev`.
	Environment string  `json:"environment"`
	Scopes      []Scope `json:"scopes"`
	KeyLimits
	// SecretHash is the SHA-256 of the key's secret part, 32 bytes.
	SecretHash []byte `json:"secret_hash"`
}

// KeyChanged replaces the limits of an API key.
type KeyChanged struct {
	KeyID string `json:"key_id"`
	OrgID string `json:"org_id"`
	KeyLimits
}

// KeyRotated replaces the secret of an API key.
type KeyRotated struct {
	KeyID      string `json:"key_id"`
	OrgID      string `json:"org_id"`
	SecretHash []byte `json:"secret_hash"`
	// Former are the secrets that still work for a time, the newest first.
	Former []KeySecret `json:"former,omitempty"`
}

// KeyExpiryMailed records that owners and admins were mailed about the expiry of an API key.
type KeyExpiryMailed struct {
	KeyID     string    `json:"key_id"`
	OrgID     string    `json:"org_id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// KeyRevoked revokes an API key.
type KeyRevoked struct {
	KeyID string `json:"key_id"`
	OrgID string `json:"org_id"`
}

// ProjectionSkipped makes a projection skip an event that it could not apply, by an operator's
// decision (aggregate projection, id its name). It comes after that event in the directory, so
// projections read all of these facts first.
type ProjectionSkipped struct {
	Projection string `json:"projection"`
	// Sequence is the event's sequence in the projection's stream, Type its type if known.
	Sequence uint64 `json:"sequence"`
	Type     string `json:"type,omitempty"`
	// Error is why the event could not be applied, Why the operator's reason to skip it.
	Error string `json:"error,omitempty"`
	Why   string `json:"why"`
}

// EventLost stands in the place of an event that a disk has damaged, and whose loss an operator has
// accepted (aggregate lost, without an id).
type EventLost struct {
	Sequence uint64 `json:"sequence"`
}

// EventType returns the type of the events that record the fact. Subjects are `directory.<aggregate>.<id…>`.
func (OrgCreated) EventType() string               { return "org.created" }
func (OrgRenamed) EventType() string               { return "org.renamed" }
func (MemberAdded) EventType() string              { return "org.member_added" }
func (MemberRoleChanged) EventType() string        { return "org.member_role_changed" }
func (MemberRemoved) EventType() string            { return "org.member_removed" }
func (MemberInvited) EventType() string            { return "org.invited" }
func (MemberInvitationRevoked) EventType() string  { return "org.invitation_revoked" }
func (MemberInvitationRestored) EventType() string { return "org.invitation_restored" }
func (MemberInvitationAccepted) EventType() string { return "org.invitation_accepted" }
func (ConditionSeen) EventType() string            { return "org.condition_seen" }
func (ConditionUnseen) EventType() string          { return "org.condition_unseen" }
func (MemberNamed) EventType() string              { return "org.member_named" }
func (MailPreferencesSet) EventType() string       { return "org.mail_preferences_set" }
func (AccountCreated) EventType() string           { return "account.created" }
func (AccountIdentityBound) EventType() string     { return "account.identity_bound" }
func (SiteCreated) EventType() string              { return "site.created" }
func (SiteRenamed) EventType() string              { return "site.renamed" }
func (HubRegistered) EventType() string            { return "hub.registered" }
func (HubCertificateIssued) EventType() string     { return "hub.certificate_issued" }
func (HubCertificateRevoked) EventType() string    { return "hub.certificate_revoked" }
func (HubAdded) EventType() string                 { return "hub.added" }
func (HubMoved) EventType() string                 { return "hub.moved" }
func (HubRenamed) EventType() string               { return "hub.renamed" }
func (HubLogBegun) EventType() string              { return "hub.log_begun" }
func (HubLogRestored) EventType() string           { return "hub.log_restored" }
func (HubSecretRotated) EventType() string         { return "hub.secret_rotated" }
func (HubBlocked) EventType() string               { return "hub.blocked" }
func (HubUnblocked) EventType() string             { return "hub.unblocked" }
func (HubReleased) EventType() string              { return "hub.released" }
func (DeviceLabeled) EventType() string            { return "hub.device_labeled" }
func (DeviceForgotten) EventType() string          { return "hub.device_forgotten" }
func (CredentialSet) EventType() string            { return "hub.credential_set" }
func (CredentialRevocation) EventType() string     { return "hub.credential_revoked" }
func (CredentialReported) EventType() string       { return "hub.credential_reported" }
func (KeyCreated) EventType() string               { return "key.created" }
func (KeyChanged) EventType() string               { return "key.changed" }
func (KeyRotated) EventType() string               { return "key.rotated" }
func (KeyExpiryMailed) EventType() string          { return "key.expiry_mailed" }
func (KeyRevoked) EventType() string               { return "key.revoked" }
func (ProjectionSkipped) EventType() string        { return "projection.skipped" }
func (EventLost) EventType() string                { return "directory.event_lost" }
