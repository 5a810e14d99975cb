package domain

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// HubState is a hub as its events leave it. The zero value is a hub that the cloud does not know.
type HubState struct {
	ID HubID
	// Registered says that the hub is in the inventory; SecretHash is then the SHA-256 of its
	// enrolment secret.
	Registered bool
	SecretHash []byte
	// Blocked hubs neither enrol nor connect.
	Blocked bool

	// OrgID is the organization that added the hub, and keeps it; empty before. Then the rest of
	// this block means nothing either.
	OrgID  string
	SiteID string
	Name   *string
	// RegisteredAt is when the organization added the hub: the contract's registered_at.
	// ConnectedAtAdd says whether it was connected then.
	RegisteredAt   time.Time
	ConnectedAtAdd bool

	// Incarnation is the tag of the hub's event log; events stored up to and including LogAfter are
	// not of it.
	Incarnation string
	LogAfter    uint64
	// Former are the tags of the log's older events, when the installation was restored from a
	// backup since the log was begun.
	Former FormerLogs
	// Log is the hub's own name of the log that it began when it was last reset, and LogThrough the
	// number up to which nothing of it was expected then. Both are zero for a hub that has not been
	// reset since it was added.
	Log        string
	LogThrough uint64

	// Labels are the names and rooms of devices that were set through the API, by device id: only
	// of those that have one, at most MaxDeviceLabels.
	Labels map[int64]DeviceLabel

	// Released is where the hub's log stood when it was last taken away from an organization; nil
	// when it never was.
	Released *ReleasedLog

	// Certificate is the fingerprint of the current certificate, the only one that may connect;
	// empty when there is none.
	Certificate        string
	CertificateExpires time.Time
	// EnrolledAt is when the hub was last issued a certificate; zero when it never was.
	EnrolledAt time.Time
	// SupersededCertificates are those that a newer one has replaced since the last revocation:
	// they may not connect again, but stay connected. Oldest first, the last MaxFormerCertificates.
	SupersededCertificates []string
	// RevokedCertificates are those whose connections are to be cut wherever they are found. Oldest
	// first, the last MaxFormerCertificates.
	RevokedCertificates []string

	// CertificateTimes and LogTimes are when the hub's last certificates were issued and its last
	// logs begun: what a HubLimit is held against. Oldest first, the last MaxHubBurst.
	CertificateTimes []time.Time
	LogTimes         []time.Time
}

// ReleasedLog is the event log of an organization that has the hub no more, as the fields of the
// same names in HubState were.
type ReleasedLog struct {
	OrgID       string
	Incarnation string
	LogAfter    uint64
	Former      FormerLogs
	Log         string
	LogThrough  uint64
}

// MaxFormerCertificates is how many superseded, and how many revoked, certificates a hub's state
// remembers. A hub has one connection: the list only has to outlast what can still be connected.
const MaxFormerCertificates = 8

// AddHub asks that a hub be at a site of an organization: added when nobody has it, moved when the
// organization has it.
type AddHub struct {
	OrgID  string
	HubID  HubID
	SiteID string
	// Name names the hub; nil leaves a hub that is there already as it is.
	Name *string
	// Ever says whether the hub has ever been connected, Connected whether it is now.
	Ever      bool
	Connected bool
}

// UpdateHub asks for another name or site of a hub that the organization has.
type UpdateHub struct {
	OrgID string
	HubID HubID
	// SetName says whether Name counts; a nil Name then clears it.
	SetName bool
	Name    *string
	// SiteID is the site to move to; nil leaves the hub where it is.
	SiteID *string
}

// DecideRegisterHub puts a hub into the inventory, with the SHA-256 of its enrolment secret. One
// that is there already is an invalid_request: its secret is not replaced.
func DecideRegisterHub(s HubState, o Origin, id HubID, secretHash []byte) ([]Event, error) {
	if s.Registered {
		return nil, Errorf(
			CodeInvalidRequest, "serial: %s is in the inventory already", id.Serial(),
		)
	}
	if len(secretHash) != 32 {
		return nil, fmt.Errorf("hub %s: a secret's hash of %d bytes", id, len(secretHash))
	}
	return []Event{Record(o, HubRegistered{HubID: id, SecretHash: secretHash})}, nil
}

// IssueCertificate asks that a certificate become a hub's current one.
type IssueCertificate struct {
	Fingerprint string
	ExpiresAt   time.Time
	// SecretHash is the hash of the secret that the hub showed.
	SecretHash []byte
}

// DecideIssueCertificate makes a certificate the hub's current one; the one that is current already
// is no event. A hub that is not in the inventory, is blocked, or has had another secret since, is
// unauthenticated, as a wrong secret is. A hub over the limit is rate_limited.
func DecideIssueCertificate(
	s HubState, o Origin, c IssueCertificate, limit HubLimit,
) ([]Event, error) {
	if !s.Registered || s.Blocked || !bytes.Equal(s.SecretHash, c.SecretHash) {
		return nil, Errorf(CodeUnauthenticated, "unknown serial or wrong secret")
	}
	fingerprint := c.Fingerprint
	if !isLowerHex(fingerprint, 64) || slices.Contains(s.RevokedCertificates, fingerprint) ||
		slices.Contains(s.SupersededCertificates, fingerprint) {
		return nil, fmt.Errorf("hub %s: fingerprint %q cannot become current", s.ID, fingerprint)
	}
	if s.Certificate == fingerprint {
		return nil, nil
	}
	if wait := limit.wait(s.CertificateTimes, o.At); wait > 0 {
		return nil, &Error{
			Code:       CodeRateLimited,
			RetryAfter: wait,
			Message:    "this hub was issued too many certificates lately; the one that it has stays valid",
		}
	}
	return []Event{
		Record(
			o,
			HubCertificateIssued{
				HubID:       s.ID,
				Fingerprint: fingerprint,
				ExpiresAt:   wholeMicroseconds(c.ExpiresAt),
			},
		),
	}, nil
}

// DecideRevokeCertificate leaves the hub without a certificate; without one already it is no event.
// A hub that the organization does not have is not_found.
func DecideRevokeCertificate(s HubState, o Origin, orgID string) ([]Event, error) {
	if !s.ownedBy(orgID) {
		return nil, ErrHubNotFound()
	}
	if s.Certificate == "" {
		return nil, nil
	}
	return []Event{
		Record(o, HubCertificateRevoked{HubID: s.ID, OrgID: orgID, Fingerprint: s.Certificate}),
	}, nil
}

// DecideAddHub puts a hub at a site; that the site is the organization's has been looked up before.
// incarnation is the tag that the hub's event log gets if this adds it, 8 hexadecimal digits. A hub
// that is where and what it should be already is no event.
//
// A hub that is not in the inventory, one that is blocked, one that has never connected, and one
// that another organization has are refused alike, by the one ErrHubNotAddable: whoever reads a
// serial off a label must not learn whose it is.
func DecideAddHub(s HubState, o Origin, c AddHub, incarnation string) ([]Event, error) {
	if s.ownedBy(c.OrgID) {
		return DecideUpdateHub(
			s,
			o,
			UpdateHub{
				OrgID:   c.OrgID,
				HubID:   c.HubID,
				SetName: c.Name != nil,
				Name:    c.Name,
				SiteID:  &c.SiteID,
			},
		)
	}
	if !s.Registered || s.Blocked || s.OrgID != "" || !c.Ever {
		return nil, ErrHubNotAddable()
	}
	if c.OrgID == "" || !isLowerHex(incarnation, 8) {
		return nil, fmt.Errorf(
			"hub %s: cannot be added to organization %q with incarnation %q", s.ID, c.OrgID,
			incarnation,
		)
	}
	return []Event{Record(o, HubAdded{
		HubID: s.ID, OrgID: c.OrgID, SiteID: c.SiteID, Name: c.Name, Incarnation: incarnation,
		Connected: c.Connected, After: s.LogAfter,
	})}, nil
}

// DecideUpdateHub moves and renames a hub; that a site to move to is the organization's has been
// looked up before. What is so already is no event. A hub that the organization does not have is
// not_found.
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

// DecideBeginLog begins the hub's event log anew after a reset. b's Incarnation, Log, Through and
// After count; the rest is the hub's. The log that was begun last is no event, so that a bridge
// that is not sure may ask again. A hub that nobody has added has no event log: not_found. A hub
// over the limit is rate_limited.
func DecideBeginLog(s HubState, o Origin, b HubLogBegun, limit HubLimit) ([]Event, error) {
	if s.OrgID == "" {
		return nil, ErrHubNotFound()
	}
	if b.Log == "" {
		return nil, fmt.Errorf("hub %s: a log without a name", s.ID)
	}
	if s.Log == b.Log {
		return nil, nil
	}
	if !isLowerHex(b.Incarnation, 8) || b.Incarnation == s.Incarnation {
		return nil, fmt.Errorf(
			"hub %s: incarnation %q after %q is not 8 hexadecimal digits of its own", s.ID,
			b.Incarnation, s.Incarnation,
		)
	}
	if b.After < s.LogAfter {
		return nil, fmt.Errorf(
			"hub %s: a log after %d cannot follow one after %d", s.ID, b.After, s.LogAfter,
		)
	}
	if wait := limit.wait(s.LogTimes, o.At); wait > 0 {
		return nil, &Error{
			Code:       CodeRateLimited,
			RetryAfter: wait,
			Message:    "this hub was reset too often lately",
		}
	}
	b.HubID, b.OrgID = s.ID, s.OrgID
	return []Event{Record(o, b)}, nil
}

// DecideRestoreLog gives the hub's event log another tag after a restore that brought the hub's
// stream back up to the sequence kept; 0 when the backup had none of it. A hub that nobody has
// added has no event log: not_found.
func DecideRestoreLog(s HubState, o Origin, incarnation string, kept uint64) ([]Event, error) {
	if s.OrgID == "" {
		return nil, ErrHubNotFound()
	}
	if _, used := s.Former.Find(incarnation); used || !isLowerHex(incarnation, 8) ||
		incarnation == s.Incarnation {
		return nil, fmt.Errorf(
			"hub %s: incarnation %q after %q is not 8 hexadecimal digits of its own", s.ID,
			incarnation, s.Incarnation,
		)
	}
	return []Event{Record(o, HubLogRestored{
		HubID: s.ID, OrgID: s.OrgID, Incarnation: incarnation, After: min(s.LogAfter, kept),
		Former: s.Former.then(s.Incarnation, kept),
	})}, nil
}

// EvolveHub folds an event into a hub.
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
		s.RegisteredAt, s.ConnectedAtAdd = e.At, f.Connected
		s.Incarnation, s.LogAfter = f.Incarnation, f.After
	case HubMoved:
		s.SiteID = f.SiteID
	case HubRenamed:
		s.Name = f.Name
	case HubLogBegun:
		s.Incarnation, s.LogAfter, s.Log, s.LogThrough = f.Incarnation, f.After, f.Log, f.Through
		s.Former, s.Labels = "", nil
		s.LogTimes = rememberTime(s.LogTimes, e.At)
	case HubReleased:
		s.Released = &ReleasedLog{
			OrgID: s.OrgID, Incarnation: s.Incarnation, LogAfter: s.LogAfter, Former: s.Former,
			Log: s.Log, LogThrough: s.LogThrough,
		}
		s.OrgID, s.SiteID, s.Name = "", "", nil
		s.RegisteredAt, s.ConnectedAtAdd = time.Time{}, false
		s.Incarnation, s.LogAfter, s.Former, s.Log, s.LogThrough = "", f.After, "", "", 0
		s.Labels = nil
	case HubLogRestored:
		s.Incarnation, s.LogAfter, s.Former = f.Incarnation, f.After, f.Former
	case DeviceLabeled:
		s.Labels = withLabel(s.Labels, f.DeviceID, DeviceLabel{Name: f.Name, Room: f.Room})
	case DeviceForgotten:
		s.Labels = withLabel(s.Labels, f.DeviceID, DeviceLabel{})
	default:
		return s, misplaced(e, "hub")
	}
	return s, nil
}

// ErrHubNotFound is the refusal for a hub that the organization does not have, whoever else may
// have it.
func ErrHubNotFound() *Error { return Errorf(CodeNotFound, "no such hub") }

// ErrHubNotAddable is the refusal of a hub that cannot be added, the same for every reason.
func ErrHubNotAddable() *Error {
	return Errorf(
		CodeHubNotAddable,
		"serial: this hub cannot be added: the Serial is unknown, the hub has not come online "+
			"yet, or another organization has it",
	)
}

func (s HubState) ownedBy(orgID string) bool { return orgID != "" && s.OrgID == orgID }

// remember appends to a bounded list without touching the former one, which an earlier state still
// holds.
func remember(list []string, more ...string) []string {
	list = append(slices.Clone(list), more...)
	return list[max(0, len(list)-MaxFormerCertificates):]
}

// withoutCertificates returns the hub with the current certificate, and those that it superseded,
// revoked.
func (s HubState) withoutCertificates(current string) HubState {
	ended := slices.Clone(s.SupersededCertificates)
	if current != "" {
		ended = append(ended, current)
	}
	s.RevokedCertificates = remember(s.RevokedCertificates, ended...)
	s.SupersededCertificates = nil
	s.Certificate, s.CertificateExpires = "", time.Time{}
	return s
}

func sameText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
