package domain

import (
	"fmt"
	"time"
)

// EnrolmentStatus is the status of a hub in the inventory, as operators see it.
type EnrolmentStatus string

// The statuses of hubs in the inventory.
const (
	EnrolmentNever   EnrolmentStatus = "never_enrolled"
	EnrolmentCurrent EnrolmentStatus = "enrolled"
	// EnrolmentRevoked: the certificate was revoked and the hub has not enrolled since.
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

// DecideRotateSecret replaces the SHA-256 of a hub's enrolment secret, and revokes the hub's
// certificates unless keepCertificate is set. It returns ErrNotInInventory for an unknown hub.
func DecideRotateSecret(
	s HubState, o Origin, secretHash []byte, keepCertificate bool,
) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if len(secretHash) != 32 {
		return nil, fmt.Errorf(
			"hub %s: secret hash has %d bytes, must be 32", s.ID, len(secretHash),
		)
	}
	return []Event{Record(o, HubSecretRotated{
		HubID: s.ID, OrgID: s.OrgID, SecretHash: secretHash, KeepCertificate: keepCertificate,
	})}, nil
}

// DecideBlockHub blocks a hub from enrolling and connecting; it returns no event if the hub is
// blocked. It returns ErrNotInInventory for an unknown hub.
func DecideBlockHub(s HubState, o Origin) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if s.Blocked {
		return nil, nil
	}
	return []Event{Record(o, HubBlocked{HubID: s.ID, OrgID: s.OrgID})}, nil
}

// DecideUnblockHub unblocks a hub; it returns no event if the hub is not blocked. It returns
// ErrNotInInventory for an unknown hub.
func DecideUnblockHub(s HubState, o Origin) ([]Event, error) {
	if !s.Registered {
		return nil, ErrNotInInventory()
	}
	if !s.Blocked {
		return nil, nil
	}
	return []Event{Record(o, HubUnblocked{HubID: s.ID, OrgID: s.OrgID})}, nil
}

// DecideReleaseHub releases a hub from its organization; it returns no event if no organization has
// the hub. after is the last sequence of the hub's stream. It returns ErrNotInInventory for an
// unknown hub.
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

// DecideRemoveHub is DecideReleaseHub for the organization that has the hub. It returns not_found
// for a hub that the organization does not have.
func DecideRemoveHub(s HubState, o Origin, orgID string, after uint64) ([]Event, error) {
	if !s.ownedBy(orgID) {
		return nil, ErrHubNotFound()
	}
	return DecideReleaseHub(s, o, after)
}

// ErrNotInInventory returns the not_found error for a Serial that is not in the inventory.
func ErrNotInInventory() *Error { return Errorf(CodeNotFound, "serial: is not in the inventory") }

// HubOf returns the hub of a hub's fact; false for other facts and for nil.
func HubOf(fact Fact) (HubID, bool) {
	id, ok := idOf(fact, "hub.", "HubID")
	return HubID(id), ok
}
