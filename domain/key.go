package domain

import (
	"fmt"
	"slices"
	"time"
)

// KeyState is an API key, folded from its events. The zero value is no key.
type KeyState struct {
	ID          string
	OrgID       string
	Label       string
	Environment string
	Scopes      []Scope
	KeyLimits
	SecretHash [32]byte
	// Former are the secrets that the key had before, and that still work for a time.
	Former    []KeySecret
	CreatedAt time.Time
	// ExpiryMailed is the ExpiresAt that people were mailed about.
	ExpiryMailed time.Time
	// RevokedAt is zero while the key is valid.
	RevokedAt time.Time
}

// KeyLimits are what limits an API key beside its scopes.
type KeyLimits struct {
	// Sites are the sites that the key reaches, in order; empty for all.
	Sites []string `json:"sites,omitempty"`
	// ExpiresAt is when the key stops working; zero for never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// KeySecret is a secret that a key had before.
type KeySecret struct {
	// Hash is its SHA-256, 32 bytes.
	Hash []byte `json:"hash"`
	// Until is when it stops working.
	Until time.Time `json:"until"`
}

const (
	// MaxKeySites is how many sites a key may be limited to.
	MaxKeySites = 100
	// KeyExpiryNotice is how long before its expiry people are mailed about a key.
	KeyExpiryNotice = 7 * 24 * time.Hour
)

// Clean returns the limits for a key that has scopes and begins to have the limits now: sites in
// order and each once. It returns an invalid_request for a time that is past, for too many sites,
// and for sites beside a scope that reaches further.
func (l KeyLimits) Clean(scopes []Scope, now time.Time) (KeyLimits, error) {
	l.Sites = slices.Compact(slices.Sorted(slices.Values(l.Sites)))
	if len(l.Sites) > MaxKeySites {
		return l, Errorf(CodeInvalidRequest, "sites: must be at most %d", MaxKeySites)
	}
	for _, scope := range scopes {
		if len(l.Sites) > 0 && !scope.OfSites() {
			return l, Errorf(
				CodeInvalidRequest,
				"sites: the scope %s reaches the whole organization; leave out the scope or the sites",
				scope,
			)
		}
	}
	if l.ExpiresAt.IsZero() {
		return l, nil
	}
	l.ExpiresAt = wholeMicroseconds(l.ExpiresAt)
	if !l.ExpiresAt.After(now) || l.ExpiresAt.Year() > 9999 {
		return l, Errorf(CodeInvalidRequest, "expires_at: must be in the future, before the year 10000")
	}
	return l, nil
}

// Equal reports whether both limit a key in the same way.
func (l KeyLimits) Equal(other KeyLimits) bool {
	return slices.Equal(l.Sites, other.Sites) && l.ExpiresAt.Equal(other.ExpiresAt)
}

// FormerKeyUse returns the name under which the use of a key's former secrets is recorded.
func FormerKeyUse(keyID string) string { return keyID + "-former" }

// Exists reports whether the key was ever created.
func (s KeyState) Exists() bool { return s.ID != "" }

// Revoked reports whether the key was revoked.
func (s KeyState) Revoked() bool { return !s.RevokedAt.IsZero() }

// KeyOf returns the id of the key of a key's fact; false for other facts and for nil.
func KeyOf(fact Fact) (id string, ok bool) { return idOf(fact, "key.", "KeyID") }

// CleanScopes returns the scopes for a new key without duplicates, in the contract's order. It
// returns an invalid_request that names the allowed scopes for an empty list and an unknown scope.
func CleanScopes(scopes []Scope) ([]Scope, error) {
	for _, scope := range scopes {
		if _, err := ParseScope(string(scope)); err != nil {
			return nil, err
		}
	}
	clean := slices.DeleteFunc(
		AllScopes(), func(scope Scope) bool { return !slices.Contains(scopes, scope) },
	)
	if len(clean) == 0 {
		return nil, Errorf(CodeInvalidRequest, "scopes: must name at least one of %s", scopeNames())
	}
	return clean, nil
}

// DecideCreateKey creates a key for an organization. The caller has validated label, scopes and
// limits.
func DecideCreateKey(
	s KeyState, o Origin, orgID, label string, scopes []Scope, limits KeyLimits, key Key,
) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("key %s exists already", key.ID)
	}
	hash := key.SecretHash()
	return []Event{Record(o, KeyCreated{
		KeyID: key.ID, OrgID: orgID, Label: label, Environment: key.Environment, Scopes: scopes,
		KeyLimits: limits, SecretHash: hash[:],
	})}, nil
}

// DecideChangeKey sets the limits of a key, whose sites the caller has checked; it returns no event
// if nothing changes. Its errors are invalid_request, and not_found for a revoked key and as in
// DecideRevokeKey.
func DecideChangeKey(s KeyState, o Origin, orgID string, limits KeyLimits) ([]Event, error) {
	if !s.isOf(orgID) || s.Revoked() {
		return nil, ErrKeyNotFound()
	}
	limits, err := limits.Clean(s.Scopes, o.At)
	if err != nil || limits.Equal(s.KeyLimits) {
		return nil, err
	}
	return []Event{Record(o, KeyChanged{s.ID, s.OrgID, limits})}, nil
}

// DecideRotateKey replaces the secret of a key by the one of next, which has the id and the
// environment of the key. The former secrets work for the time overlap, or for what is left of
// a shorter one. It fails as DecideChangeKey does.
func DecideRotateKey(
	s KeyState, o Origin, orgID string, next Key, overlap time.Duration,
) ([]Event, error) {
	if !s.isOf(orgID) || s.Revoked() {
		return nil, ErrKeyNotFound()
	}
	if overlap < 0 || overlap > MaxSecretOverlap {
		return nil, Errorf(CodeInvalidRequest, "overlap: must be at most %s", MaxSecretOverlap)
	}
	until := wholeMicroseconds(o.At.Add(overlap))
	former := []KeySecret{{Hash: s.SecretHash[:], Until: until}}
	for _, f := range s.Former {
		if f.Until.After(until) {
			f.Until = until
		}
		former = append(former, f)
	}
	former = slices.DeleteFunc(former, func(f KeySecret) bool { return !f.Until.After(o.At) })
	hash := next.SecretHash()
	return []Event{Record(o, KeyRotated{
		s.ID, s.OrgID, hash[:], former[:min(len(former), maxFormerSecrets)],
	})}, nil
}

// DecideMailKeyExpiry records that people were mailed about the expiry of a key; it returns no event
// if that is recorded already.
func DecideMailKeyExpiry(s KeyState, o Origin) ([]Event, error) {
	if s.Revoked() || s.ExpiryMailed.Equal(s.ExpiresAt) {
		return nil, nil
	}
	return []Event{Record(o, KeyExpiryMailed{s.ID, s.OrgID, s.ExpiresAt})}, nil
}

// isOf reports whether the key is an organization's, or exists if orgID is empty.
func (s KeyState) isOf(orgID string) bool {
	return s.Exists() && (orgID == "" || s.OrgID == orgID)
}

// DecideRevokeKey revokes a key; it returns no event if the key is revoked already. It returns
// not_found for a key that does not exist and, unless orgID is empty, for another organization's.
func DecideRevokeKey(s KeyState, o Origin, orgID string) ([]Event, error) {
	if !s.isOf(orgID) {
		return nil, ErrKeyNotFound()
	}
	if s.Revoked() {
		return nil, nil
	}
	return []Event{Record(o, KeyRevoked{KeyID: s.ID, OrgID: s.OrgID})}, nil
}

// EvolveKey folds an event into a key.
func EvolveKey(s KeyState, e Event) (KeyState, error) {
	fact, err := e.Fact()
	if err != nil {
		return s, err
	}
	switch f := fact.(type) {
	case KeyCreated:
		if len(f.SecretHash) != len(s.SecretHash) {
			return s, fmt.Errorf(
				"event %s (%s): secret hash has %d bytes, must be 32",
				e.ID, e.Type, len(f.SecretHash),
			)
		}
		return KeyState{
			ID: f.KeyID, OrgID: f.OrgID, Label: f.Label, Environment: f.Environment,
			Scopes: f.Scopes, KeyLimits: f.KeyLimits, SecretHash: [32]byte(f.SecretHash),
			CreatedAt: e.At,
		}, nil
	case KeyChanged:
		s.KeyLimits = f.KeyLimits
		return s, nil
	case KeyRotated:
		if len(f.SecretHash) != len(s.SecretHash) {
			return s, fmt.Errorf("event %s (%s): secret hash must have 32 bytes", e.ID, e.Type)
		}
		s.SecretHash, s.Former = [32]byte(f.SecretHash), f.Former
		return s, nil
	case KeyExpiryMailed:
		s.ExpiryMailed = f.ExpiresAt
		return s, nil
	case KeyRevoked:
		s.RevokedAt = e.At
		return s, nil
	default:
		return s, misplaced(e, "key")
	}
}

// ErrKeyNotFound returns the not_found error for an API key.
func ErrKeyNotFound() *Error { return Errorf(CodeNotFound, "no such API key") }
