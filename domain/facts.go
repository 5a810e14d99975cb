package domain

import "time"

// The facts of the directory, by aggregate. Subjects are `directory.<aggregate>.<id…>`.
const (
	TypeOrgCreated  = "org.created"
	TypeMemberAdded = "org.member_added"

	TypeSiteCreated = "site.created"
	TypeSiteRenamed = "site.renamed"

	TypeHubRegistered         = "hub.registered"
	TypeHubCertificateIssued  = "hub.certificate_issued"
	TypeHubCertificateRevoked = "hub.certificate_revoked"
	TypeHubAdded              = "hub.added"
	TypeHubMoved              = "hub.moved"
	TypeHubRenamed            = "hub.renamed"
	TypeHubLogBegun           = "hub.log_begun"

	TypeKeyCreated = "key.created"
	TypeKeyRevoked = "key.revoked"
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

// HubCertificateIssued makes a certificate the hub's current one and ends the former at its next connection.
type HubCertificateIssued struct {
	HubID HubID `json:"hub_id"`
	// Fingerprint is the SHA-256 of the certificate's DER form, 64 hexadecimal digits in lower case.
	Fingerprint string    `json:"fingerprint"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// HubCertificateRevoked leaves the hub without a current certificate; Fingerprint is the one that was current, and whoever
// is connected with it is cut off.
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
	// Incarnation is the tag of the hub's event log, 8 hexadecimal digits: every cursor carries it.
	Incarnation string `json:"incarnation"`
	// Connected says whether the hub was connected at that moment: then it is online from the start, otherwise unknown.
	Connected bool `json:"connected"`
}

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

// HubLogBegun begins the event log of a hub that was reset: events stored up to and including After belong to the log
// before and are read no more, and names and rooms of the hub's devices are forgotten.
type HubLogBegun struct {
	HubID       HubID  `json:"hub_id"`
	OrgID       string `json:"org_id"`
	Incarnation string `json:"incarnation"`
	// Log is the hub's own name of its new log, and Through the number up to which nothing of it is expected.
	Log     string `json:"log"`
	Through uint64 `json:"through"`
	// After is a sequence number of the hub's stream.
	After uint64 `json:"after"`
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

// EventType gives the type under which each fact is recorded.
func (OrgCreated) EventType() string            { return TypeOrgCreated }
func (MemberAdded) EventType() string           { return TypeMemberAdded }
func (SiteCreated) EventType() string           { return TypeSiteCreated }
func (SiteRenamed) EventType() string           { return TypeSiteRenamed }
func (HubRegistered) EventType() string         { return TypeHubRegistered }
func (HubCertificateIssued) EventType() string  { return TypeHubCertificateIssued }
func (HubCertificateRevoked) EventType() string { return TypeHubCertificateRevoked }
func (HubAdded) EventType() string              { return TypeHubAdded }
func (HubMoved) EventType() string              { return TypeHubMoved }
func (HubRenamed) EventType() string            { return TypeHubRenamed }
func (HubLogBegun) EventType() string           { return TypeHubLogBegun }
func (KeyCreated) EventType() string            { return TypeKeyCreated }
func (KeyRevoked) EventType() string            { return TypeKeyRevoked }
