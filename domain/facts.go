package domain

import "time"

// The facts of the directory, by aggregate. Subjects are `directory.<aggregate>.<id…>`.
const (
	TypeOrgCreated         = "org.created"
	TypeMemberAdded        = "org.member_added"
	TypeMemberRoleChanged  = "org.member_role_changed"
	TypeMemberRemoved      = "org.member_removed"
	TypeMemberInvited      = "org.invited"
	TypeInvitationRevoked  = "org.invitation_revoked"
	TypeInvitationAccepted = "org.invitation_accepted"

	TypeAccountCreated = "account.created"

	TypeSiteCreated = "site.created"
	TypeSiteRenamed = "site.renamed"

	TypeHubRegistered         = "hub.registered"
	TypeHubCertificateIssued  = "hub.certificate_issued"
	TypeHubCertificateRevoked = "hub.certificate_revoked"
	TypeHubAdded              = "hub.added"
	TypeHubMoved              = "hub.moved"
	TypeHubRenamed            = "hub.renamed"
	TypeHubLogBegun           = "hub.log_begun"
	TypeHubLogRestored        = "hub.log_restored"
	TypeHubSecretRotated      = "hub.secret_rotated"
	TypeHubBlocked            = "hub.blocked"
	TypeHubUnblocked          = "hub.unblocked"
	TypeHubReleased           = "hub.released"
	TypeDeviceLabeled         = "hub.device_labeled"
	TypeDeviceForgotten       = "hub.device_forgotten"

	TypeKeyCreated = "key.created"
	TypeKeyRevoked = "key.revoked"

	TypeProjectionSkipped = "projection.skipped"
)

// OrgCreated begins an organization (aggregate org, id OrgID, a UUIDv7).
type OrgCreated struct {
	OrgID string `json:"org_id"`
	Name  string `json:"name"`
}

// MemberAdded makes a person a member of the organization (aggregate org).
type MemberAdded struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
	// Email as it was given; addresses are compared by NormalizeEmail.
	Email string `json:"email"`
	Role  Role   `json:"role"`
}

// MemberRoleChanged gives a member another role (aggregate org).
type MemberRoleChanged struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
	Role     Role   `json:"role"`
}

// MemberRemoved ends a person's membership (aggregate org). Whoever is invited again joins under
// another id.
type MemberRemoved struct {
	OrgID    string `json:"org_id"`
	MemberID string `json:"member_id"`
}

// MemberInvited asks a person to join the organization (aggregate org). It ends whatever invitation
// the address had before.
type MemberInvited struct {
	OrgID string `json:"org_id"`
	// InvitationID is a UUIDv7.
	InvitationID string `json:"invitation_id"`
	// Email as it was given; addresses are compared by NormalizeEmail.
	Email string `json:"email"`
	Role  Role   `json:"role"`
	// TokenHash is the SHA-256 of the secret in the invitation's link, 32 bytes.
	TokenHash []byte `json:"token_hash"`
	// ExpiresAt is when the link stops working.
	ExpiresAt time.Time `json:"expires_at"`
	// Replaces is the invitation that was pending for the address until now; empty when there was
	// none.
	Replaces string `json:"replaces,omitempty"`
}

// MemberInvitationRevoked takes a pending invitation back (aggregate org).
type MemberInvitationRevoked struct {
	OrgID        string `json:"org_id"`
	InvitationID string `json:"invitation_id"`
}

// MemberInvitationAccepted says that the member, who was added by the event before it, has accepted
// the invitation (aggregate org).
type MemberInvitationAccepted struct {
	OrgID        string `json:"org_id"`
	InvitationID string `json:"invitation_id"`
	MemberID     string `json:"member_id"`
}

// AccountCreated makes the account of a person (aggregate account, id AccountKey of the address).
type AccountCreated struct {
	// AccountID is a UUIDv7.
	AccountID string `json:"account_id"`
	// Email as it was given; addresses are compared by NormalizeEmail.
	Email string `json:"email"`
}

// SiteCreated begins a site (aggregate site, id <org>.<site>; SiteID is a UUIDv7).
type SiteCreated struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	Name   string `json:"name"`
}

// SiteRenamed gives a site another name.
type SiteRenamed struct {
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
	Name   string `json:"name"`
}

// HubRegistered puts a hub into the inventory (aggregate hub, id HubID).
type HubRegistered struct {
	HubID HubID `json:"hub_id"`
	// SecretHash is the SHA-256 of the enrolment secret, 32 bytes.
	SecretHash []byte `json:"secret_hash"`
}

// HubCertificateIssued makes a certificate the hub's current one and ends the former at its next
// connection.
type HubCertificateIssued struct {
	HubID HubID `json:"hub_id"`
	// Fingerprint is the SHA-256 of the certificate's DER form, 64 hexadecimal digits in lower
	// case.
	Fingerprint string    `json:"fingerprint"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// HubCertificateRevoked leaves the hub without a current certificate; Fingerprint is the one that
// was current, and whoever is connected with it is cut off.
type HubCertificateRevoked struct {
	HubID       HubID  `json:"hub_id"`
	OrgID       string `json:"org_id"`
	Fingerprint string `json:"fingerprint"`
}

// HubAdded gives a hub to its first and only organization, at a site, and begins its event log.
type HubAdded struct {
	HubID  HubID   `json:"hub_id"`
	OrgID  string  `json:"org_id"`
	SiteID string  `json:"site_id"`
	Name   *string `json:"name"`
	// EpochID is the id of the epoch in which the hub's event log begins.
	EpochID EpochID `json:"incarnation"`
	// Connected says whether the hub was connected at that moment: then it is online from the
	// start, otherwise unknown.
	Connected bool `json:"connected"`
	// After is a sequence number of the hub's stream: what is stored up to and including it is of
	// an organization that had the hub before. Zero for a hub that nobody had.
	After uint64 `json:"after,omitempty"`
}

// Epoch returns the epoch that the hub's event log begins with.
func (f HubAdded) Epoch() Epoch { return Epoch{ID: f.EpochID, After: f.After} }

// HubMoved puts a hub at another site of its organization.
type HubMoved struct {
	HubID  HubID  `json:"hub_id"`
	OrgID  string `json:"org_id"`
	SiteID string `json:"site_id"`
}

// HubRenamed names a hub, or clears its name.
type HubRenamed struct {
	HubID HubID   `json:"hub_id"`
	OrgID string  `json:"org_id"`
	Name  *string `json:"name"`
}

// HubLogBegun begins the event log of a hub that was reset: events stored up to and including After
// belong to the log before and are read no more, and names and rooms of the hub's devices are
// forgotten.
type HubLogBegun struct {
	HubID   HubID   `json:"hub_id"`
	OrgID   string  `json:"org_id"`
	EpochID EpochID `json:"incarnation"`
	// OwnLog is the hub's name for its new log, and Through the number up to which no event of it
	// is expected.
	OwnLog  string `json:"log"`
	Through uint64 `json:"through"`
	// After is a sequence number of the hub's stream.
	After uint64 `json:"after"`
}

// Epoch returns the epoch that the new log begins with.
func (f HubLogBegun) Epoch() Epoch { return Epoch{ID: f.EpochID, After: f.After} }

// HubLogRestored records that the hub's event log was restored from a backup with the rest of the
// installation. Events stored after the backup are lost. What is stored from now on has another
// epoch, so that the cursor of a lost event is not taken for that of a new one. Names and rooms
// stay as the backup has them.
type HubLogRestored struct {
	HubID   HubID   `json:"hub_id"`
	OrgID   string  `json:"org_id"`
	EpochID EpochID `json:"incarnation"`
	// After is a sequence number of the hub's stream: messages up to and including it are never
	// read again.
	After uint64 `json:"after"`
	// Former are the epoch ids of the restored events behind After.
	Former FormerEpochs `json:"former"`
}

// Epoch returns the epoch of the restored log.
func (f HubLogRestored) Epoch() Epoch {
	return Epoch{ID: f.EpochID, After: f.After, Former: f.Former}
}

// HubSecretRotated replaces the enrolment secret of a hub (aggregate hub): the former one enrols no
// more.
type HubSecretRotated struct {
	HubID HubID `json:"hub_id"`
	// OrgID is the organization that has the hub; empty when none has.
	OrgID string `json:"org_id,omitempty"`
	// SecretHash is the SHA-256 of the new secret, 32 bytes.
	SecretHash []byte `json:"secret_hash"`
	// KeepCertificate reports whether the hub's current certificate stays valid. Otherwise it is
	// revoked.
	KeepCertificate bool `json:"keep_certificate"`
}

// HubBlocked keeps a hub from enrolling and from connecting until it is unblocked (aggregate hub).
type HubBlocked struct {
	HubID HubID `json:"hub_id"`
	// OrgID is the organization that has the hub; empty when none has.
	OrgID string `json:"org_id,omitempty"`
}

// HubUnblocked ends a HubBlocked (aggregate hub).
type HubUnblocked struct {
	HubID HubID `json:"hub_id"`
	// OrgID is the organization that has the hub; empty when none has.
	OrgID string `json:"org_id,omitempty"`
}

// HubReleased takes a hub away from its organization, as if it had never been added (aggregate
// hub). Names and rooms of its devices are forgotten, and its event log is read by nobody any more.
type HubReleased struct {
	HubID HubID  `json:"hub_id"`
	OrgID string `json:"org_id"`
	// After is a sequence number of the hub's stream: what is stored up to and including it is of
	// this organization.
	After uint64 `json:"after"`
}

// DeviceLabeled says what name and room are set for a device of the hub through the API (aggregate
// hub): all of it, not only what changed. Both nil: nothing is set any more.
type DeviceLabeled struct {
	HubID    HubID   `json:"hub_id"`
	OrgID    string  `json:"org_id"`
	DeviceID int64   `json:"device_id"`
	Name     *string `json:"name"`
	Room     *string `json:"room"`
}

// DeviceForgotten says that the hub has forgotten a device, and with it go the name and room that
// were set (aggregate hub).
type DeviceForgotten struct {
	HubID    HubID  `json:"hub_id"`
	OrgID    string `json:"org_id"`
	DeviceID int64  `json:"device_id"`
}

// KeyCreated makes an API key (aggregate key, id KeyID).
type KeyCreated struct {
	KeyID string `json:"key_id"`
	OrgID string `json:"org_id"`
	Label string `json:"label"`
	// Environment is `live` or `dev`.
	Environment string  `json:"environment"`
	Scopes      []Scope `json:"scopes"`
	// SecretHash is the SHA-256 of the key's secret part, 32 bytes.
	SecretHash []byte `json:"secret_hash"`
}

// KeyRevoked ends an API key.
type KeyRevoked struct {
	KeyID string `json:"key_id"`
	OrgID string `json:"org_id"`
}

// ProjectionSkipped says that an operator has a projection step over an event that it could not
// apply (aggregate projection, id its name). It stands behind the event that it is about; whoever
// builds the read models reads all of them first.
type ProjectionSkipped struct {
	Projection string `json:"projection"`
	// Sequence is the event's in the projection's stream, and Type its type as far as it could be
	// told.
	Sequence uint64 `json:"sequence"`
	Type     string `json:"type,omitempty"`
	// Error is why it could not be applied, Why the operator's reason to do without it.
	Error string `json:"error,omitempty"`
	Why   string `json:"why"`
}

// EventType gives the type under which each fact is recorded.
func (OrgCreated) EventType() string               { return TypeOrgCreated }
func (MemberAdded) EventType() string              { return TypeMemberAdded }
func (MemberRoleChanged) EventType() string        { return TypeMemberRoleChanged }
func (MemberRemoved) EventType() string            { return TypeMemberRemoved }
func (MemberInvited) EventType() string            { return TypeMemberInvited }
func (MemberInvitationRevoked) EventType() string  { return TypeInvitationRevoked }
func (MemberInvitationAccepted) EventType() string { return TypeInvitationAccepted }
func (AccountCreated) EventType() string           { return TypeAccountCreated }
func (SiteCreated) EventType() string              { return TypeSiteCreated }
func (SiteRenamed) EventType() string              { return TypeSiteRenamed }
func (HubRegistered) EventType() string            { return TypeHubRegistered }
func (HubCertificateIssued) EventType() string     { return TypeHubCertificateIssued }
func (HubCertificateRevoked) EventType() string    { return TypeHubCertificateRevoked }
func (HubAdded) EventType() string                 { return TypeHubAdded }
func (HubMoved) EventType() string                 { return TypeHubMoved }
func (HubRenamed) EventType() string               { return TypeHubRenamed }
func (HubLogBegun) EventType() string              { return TypeHubLogBegun }
func (HubLogRestored) EventType() string           { return TypeHubLogRestored }
func (HubSecretRotated) EventType() string         { return TypeHubSecretRotated }
func (HubBlocked) EventType() string               { return TypeHubBlocked }
func (HubUnblocked) EventType() string             { return TypeHubUnblocked }
func (HubReleased) EventType() string              { return TypeHubReleased }
func (DeviceLabeled) EventType() string            { return TypeDeviceLabeled }
func (DeviceForgotten) EventType() string          { return TypeDeviceForgotten }
func (KeyCreated) EventType() string               { return TypeKeyCreated }
func (KeyRevoked) EventType() string               { return TypeKeyRevoked }
func (ProjectionSkipped) EventType() string        { return TypeProjectionSkipped }
