package domain

import (
	"fmt"
	"time"
)

// What operators decide about hubs of the inventory. A hub that is not in the inventory is
// not_found.

// EnrolmentStatus is the status of a hub in the inventory.
type EnrolmentStatus string

// The statuses of hubs in the inventory.
const (
	EnrolmentNever   EnrolmentStatus = "never_enrolled"
	EnrolmentCurrent EnrolmentStatus = "enrolled"
	// EnrolmentRevoked is a hub whose certificate was revoked, and that has not enrolled since.
	EnrolmentRevoked EnrolmentStatus = "no_certificate"
	EnrolmentExpired EnrolmentStatus = "certificate_expired"
	EnrolmentBlocked EnrolmentStatus = "blocked"
)

// EnrolmentStatus returns the hub's status at a time.
func (s HubState) EnrolmentStatus(now time.Time) EnrolmentStatus {
	switch {
	case s.Blocked:
		return EnrolmentBlocked
	case s.EnrolledAt.IsZero():
		return EnrolmentNever
	case s.Certificate == "":
		return EnrolmentRevoked
	case !s.CertificateExpires.After(now):
		return EnrolmentExpired
	default:
		return EnrolmentCurrent
	}
}

// DecideRotateSecret replaces the enrolment secret of a hub by the one with this SHA-256, and
// revokes the hub's certificates unless they are to be kept.
func DecideRotateSecret(
	s HubState, o Origin, secretHash []byte, keepCertificate bool,
) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if len(secretHash) != 32 {
		return nil, fmt.Errorf("hub %s: a secret's hash of %d bytes", s.ID, len(secretHash))
	}
	return []Event{
		Record(
			o,
			HubSecretRotated{
				HubID:           s.ID,
				OrgID:           s.OrgID,
				SecretHash:      secretHash,
				KeepCertificate: keepCertificate,
			},
		),
	}, nil
}

// DecideBlockHub keeps a hub from enrolling and connecting. One that is blocked already is no
// event.
func DecideBlockHub(s HubState, o Origin) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if s.Blocked {
		return nil, nil
	}
	return []Event{Record(o, HubBlocked{HubID: s.ID, OrgID: s.OrgID})}, nil
}

// DecideUnblockHub ends the blocking of a hub. One that is not blocked is no event.
func DecideUnblockHub(s HubState, o Origin) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if !s.Blocked {
		return nil, nil
	}
	return []Event{Record(o, HubUnblocked{HubID: s.ID, OrgID: s.OrgID})}, nil
}

// DecideReleaseHub takes a hub away from its organization. after is the last sequence of the hub's
// stream. A hub that no organization has is no event.
func DecideReleaseHub(s HubState, o Origin, after uint64) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if s.OrgID == "" {
		return nil, nil
	}
	return []Event{
		Record(o, HubReleased{HubID: s.ID, OrgID: s.OrgID, After: max(after, s.Epoch.After)}),
	}, nil
}

// ErrNotInInventory is the error for a Serial that the inventory does not have.
func ErrNotInInventory() *Error { return Errorf(CodeNotFound, "serial: is not in the inventory") }

// HubOf returns the hub that a fact of a hub is about; false for a fact of something else, and for
// nil.
func HubOf(fact Fact) (HubID, bool) {
	switch f := fact.(type) {
	case HubRegistered:
		return f.HubID, true
	case HubCertificateIssued:
		return f.HubID, true
	case HubCertificateRevoked:
		return f.HubID, true
	case HubSecretRotated:
		return f.HubID, true
	case HubBlocked:
		return f.HubID, true
	case HubUnblocked:
		return f.HubID, true
	case HubAdded:
		return f.HubID, true
	case HubReleased:
		return f.HubID, true
	case HubMoved:
		return f.HubID, true
	case HubRenamed:
		return f.HubID, true
	case HubLogBegun:
		return f.HubID, true
	case HubLogRestored:
		return f.HubID, true
	case DeviceLabeled:
		return f.HubID, true
	case DeviceForgotten:
		return f.HubID, true
	default:
		return "", false
	}
}
