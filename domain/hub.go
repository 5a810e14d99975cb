package domain

import (
	"fmt"
	"time"
)

// HubState is a hub, folded from its events. The zero value is an unknown hub.
type HubState struct {
	ID HubID
	// Registered is whether the hub is in the inventory. SecretHash is then the SHA-256 of its
	// enrolment secret.
	Registered bool
	SecretHash []byte
	// Blocked hubs neither enrol nor connect.
	Blocked bool

	// OrgID is the organization that has the hub; empty if none has. SiteID, Name, AddedAt
	// and ConnectedWhenAdded are then zero too.
	OrgID  string
	SiteID string
	Name   *string
	// AddedAt is when the organization added the hub, the contract's registered_at.
	// ConnectedWhenAdded is whether the hub was connected then.
	AddedAt            time.Time
	ConnectedWhenAdded bool

	// Epoch is the epoch of the hub's event log.
	Epoch Epoch
	// OwnLog is the hub's name for the log that it began when it was last reset, and OwnLogThrough
	// the number up to which no event of that log was expected then. Both are zero for a hub that
	// has not been reset since it was added.
	OwnLog        string
	OwnLogThrough uint64

	// Labels are the names and rooms that were set through the API, by device id; at most
	// MaxDeviceLabels.
	Labels map[int64]DeviceLabel

	// Credentials are the codes of the hub's locks; at most MaxCredentials.
	Credentials map[CredentialSlot]Credential

	// Released is the hub's log at its last release from an organization; nil if there was none.
	Released *ReleasedLog

	// Certificate is the fingerprint of the current certificate, the only one with which the hub
	// may connect; empty if it has none.
	Certificate        string
	CertificateExpires time.Time
	// EnrolledAt is when the hub was last issued a certificate; zero if never.
	EnrolledAt time.Time
	// SupersededCertificates were replaced by newer ones since the last revocation. They may not
	// connect again, but existing connections stay. Oldest first, the last MaxFormerCertificates.
	SupersededCertificates []string
	// RevokedCertificates are those whose connections must be cut. Oldest first, the last
	// MaxFormerCertificates.
	RevokedCertificates []string

	// CertificateTimes and LogTimes are when certificates were issued and logs begun, for a
	// HubLimit. Oldest first, the last MaxHubBurst.
	CertificateTimes []time.Time
	LogTimes         []time.Time
}

// AddHub is the command to add a hub to an organization at one of its sites. A hub that the
// organization already has is moved to the site.
//
// The API stores a hash of this struct's JSON with an Idempotency-Key: another field or another
// name would turn a repeated request into a conflict.
type AddHub struct {
	OrgID  string
	HubID  HubID
	SiteID string
	// Name is the hub's new name; nil keeps the current one.
	Name *string
	// Reach is the caller's, if it is limited to sites: a hub at another site cannot be added.
	Reach Reach `json:"-"`
}

// UpdateHub is the command to rename or move a hub of an organization.
type UpdateHub struct {
	OrgID string
	HubID HubID
	// SetName makes Name the new name; a nil Name clears it.
	SetName bool
	Name    *string
	// SiteID is the site to move to; nil keeps the current one.
	SiteID *string
}

// DecideRegisterHub adds a hub to the inventory, with the SHA-256 of its enrolment secret. It
// returns invalid_request for a hub that is registered already.
func DecideRegisterHub(s HubState, o Origin, id HubID, secretHash []byte) ([]Event, error) {
	if s.Registered {
		return nil, Errorf(
			CodeInvalidRequest, "serial: %s is in the inventory already", id.Serial(),
		)
	}
	if len(secretHash) != 32 {
		return nil, fmt.Errorf("hub %s: secret hash has %d bytes, must be 32", id, len(secretHash))
	}
	return []Event{Record(o, HubRegistered{HubID: id, SecretHash: secretHash})}, nil
}

// DecideAddHub adds a hub to an organization, or moves and renames a hub that the organization has.
// The caller has checked that the site is the organization's. presence is the hub's presence; nil
// for a hub that has never connected. The log of an added hub begins in the epoch. DecideAddHub
// returns no event if nothing changes.
//
// It returns the same ErrHubNotAddable for every hub that cannot be added, whether the hub is
// unknown, blocked, has never connected, or belongs to another organization: a caller who reads a
// serial off a label must not learn whose hub it is.
func DecideAddHub(
	s HubState, o Origin, c AddHub, presence *Presence, epoch EpochID,
) ([]Event, error) {
	if s.ownedBy(c.OrgID) {
		if !c.Reach.HasSite(s.SiteID) {
			return nil, ErrHubNotAddable()
		}
		return DecideUpdateHub(s, o,
			UpdateHub{OrgID: c.OrgID, HubID: c.HubID, SetName: c.Name != nil, Name: c.Name, SiteID: &c.SiteID})
	}
	// A virtual hub is only ever its organization's: no other can take its place.
	foreign := c.HubID.Virtual() && c.HubID != VirtualHubID(c.OrgID)
	if !s.Registered || s.Blocked || s.OrgID != "" || presence == nil || foreign {
		return nil, ErrHubNotAddable()
	}
	if c.OrgID == "" || epoch.IsZero() {
		return nil, fmt.Errorf(
			"hub %s: cannot be added to organization %q in epoch %s", s.ID, c.OrgID, epoch,
		)
	}
	return []Event{Record(o, HubAdded{
		HubID: s.ID, OrgID: c.OrgID, SiteID: c.SiteID, Name: c.Name, EpochID: epoch,
		Connected: presence.Online, After: s.Epoch.After,
	})}, nil
}

// DecideUpdateHub moves and renames a hub; it returns no event if nothing changes. The caller has
// checked that the site is the organization's. It returns not_found for a hub that the organization
// does not have.
func DecideUpdateHub(s HubState, o Origin, c UpdateHub) ([]Event, error) {
	if !s.ownedBy(c.OrgID) {
		return nil, ErrHubNotFound()
	}
	var events []Event
	if c.SiteID != nil && *c.SiteID != s.SiteID {
		events = append(events, Record(o, HubMoved{HubID: s.ID, OrgID: s.OrgID, SiteID: *c.SiteID}))
	}
	if c.SetName && !sameText(c.Name, s.Name) {
		events = append(events, Record(o, HubRenamed{HubID: s.ID, OrgID: s.OrgID, Name: c.Name}))
	}
	return events, nil
}

// EvolveHub folds an event into a hub's state.
func EvolveHub(s HubState, e Event) (HubState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case HubRegistered:
		s.ID, s.Registered, s.SecretHash = f.HubID, true, f.SecretHash
	case HubCertificateIssued:
		if s.Certificate != "" {
			s.SupersededCertificates = remember(s.SupersededCertificates, s.Certificate)
		}
		s.Certificate, s.CertificateExpires = f.Fingerprint, f.ExpiresAt
		s.EnrolledAt, s.CertificateTimes = e.At, rememberTime(s.CertificateTimes, e.At)
	case HubCertificateRevoked:
		s = s.withoutCertificates(f.Fingerprint)
	case HubSecretRotated:
		s.SecretHash = f.SecretHash
		if !f.KeepCertificate {
			s = s.withoutCertificates(s.Certificate)
		}
	case HubBlocked:
		s.Blocked = true
	case HubUnblocked:
		s.Blocked = false
	case HubAdded:
		s.OrgID, s.SiteID, s.Name = f.OrgID, f.SiteID, f.Name
		s.AddedAt, s.ConnectedWhenAdded = e.At, f.Connected
		s.Epoch = f.Epoch()
	case HubMoved:
		s.SiteID = f.SiteID
	case HubRenamed:
		s.Name = f.Name
	case HubLogBegun:
		s.Epoch, s.OwnLog, s.OwnLogThrough = f.Epoch(), f.OwnLog, f.Through
		s.Labels, s.Credentials = nil, nil
		s.LogTimes = rememberTime(s.LogTimes, e.At)
	case HubReleased:
		s.Released = &ReleasedLog{
			OrgID: s.OrgID, Epoch: s.Epoch, OwnLog: s.OwnLog, OwnLogThrough: s.OwnLogThrough,
		}
		s.OrgID, s.SiteID, s.Name = "", "", nil
		s.AddedAt, s.ConnectedWhenAdded = time.Time{}, false
		s.Epoch, s.OwnLog, s.OwnLogThrough = Epoch{After: f.After}, "", 0
		s.Labels, s.Credentials = nil, nil
	case HubLogRestored:
		s.Epoch = f.Epoch()
	case DeviceLabeled:
		s.Labels = withLabel(s.Labels, f.DeviceID, DeviceLabel{Name: f.Name, Room: f.Room})
	case DeviceForgotten:
		s.Labels = withLabel(s.Labels, f.DeviceID, DeviceLabel{})
		s.Credentials = s.evolveCredentials(e.At, f)
	case CredentialSet, CredentialRevocation, CredentialReported:
		s.Credentials = s.evolveCredentials(e.At, f)
	default:
		return s, misplaced(e, "hub")
	}
	return s, nil
}

// ErrHubNotFound returns the not_found error for a hub, the same for one that does not exist and
// for another organization's.
func ErrHubNotFound() *Error { return Errorf(CodeNotFound, "no such hub") }

// ErrHubNotAddable returns the error for a hub that cannot be added, the same for every reason.
func ErrHubNotAddable() *Error {
	return Errorf(
		CodeHubNotAddable,
		"serial: this hub cannot be added: the Serial is unknown, the hub has not come online "+
			"yet, or another organization has it",
	)
}

func (s HubState) ownedBy(orgID string) bool { return orgID != "" && s.OrgID == orgID }

func sameText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
