package domain

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// MaxFormerCertificates is how many superseded, and how many revoked, certificates a hub's state
// remembers. A hub has one connection, so only the last few can still be connected.
const MaxFormerCertificates = 8

// IssueCertificate is the command to make a certificate a hub's current one.
type IssueCertificate struct {
	Fingerprint string
	ExpiresAt   time.Time
	// SecretHash is the SHA-256 of the secret that the hub presented.
	SecretHash []byte
}

// DecideIssueCertificate makes a certificate the hub's current one; it returns no event if it is
// that already. It returns unauthenticated, as for a wrong secret, for a hub that is not in the
// inventory, is blocked, or whose secret was rotated meanwhile, and rate_limited for a hub over the
// limit.
func DecideIssueCertificate(
	s HubState, o Origin, c IssueCertificate, limit HubLimit,
) ([]Event, error) {
	if !s.Registered || s.Blocked || !bytes.Equal(s.SecretHash, c.SecretHash) {
		return nil, Errorf(CodeUnauthenticated, "unknown serial or wrong secret")
	}
	fingerprint := c.Fingerprint
	if !isLowerHex(fingerprint, 64) || slices.Contains(s.RevokedCertificates, fingerprint) ||
		slices.Contains(s.SupersededCertificates, fingerprint) {
		return nil, fmt.Errorf(
			"hub %s: fingerprint %q: malformed, superseded or revoked", s.ID, fingerprint,
		)
	}
	if s.Certificate == fingerprint {
		return nil, nil
	}
	if wait := limit.wait(s.CertificateTimes, o.At); wait > 0 {
		return nil, RateLimited(
			wait,
			"too many certificates were issued to this hub recently; its current one stays valid",
		)
	}
	return []Event{Record(o, HubCertificateIssued{
		HubID: s.ID, Fingerprint: fingerprint, ExpiresAt: wholeMicroseconds(c.ExpiresAt),
	})}, nil
}

// DecideRevokeCertificate revokes the hub's certificates; it returns no event if the hub has none.
// It returns not_found for a hub that the organization does not have.
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

// remember returns list with more fingerprints, at most MaxFormerCertificates of them. It does not
// change list, which an earlier state holds.
func remember(list []string, more ...string) []string {
	list = append(slices.Clone(list), more...)
	return list[max(0, len(list)-MaxFormerCertificates):]
}

// withoutCertificates returns the state after the revocation of the current and the superseded
// certificates.
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
