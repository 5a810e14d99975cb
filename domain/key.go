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
	SecretHash  [32]byte
	CreatedAt   time.Time
	// RevokedAt is zero while the key is valid.
	RevokedAt time.Time
}

// Exists reports whether the key was ever created.
func (s KeyState) Exists() bool { return s.ID != "" }

// Revoked reports whether the key was revoked.
func (s KeyState) Revoked() bool { return !s.RevokedAt.IsZero() }

// KeyOf returns the id of the key of a key's fact; false for other facts and for nil.
func KeyOf(fact Fact) (id string, ok bool) {
	switch f := fact.(type) {
	case KeyCreated:
		return f.KeyID, true
	case KeyRevoked:
		return f.KeyID, true
	default:
		return "", false
	}
}

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

// DecideCreateKey creates a key for an organization. The caller has validated label and scopes.
func DecideCreateKey(
	s KeyState, o Origin, orgID, label string, scopes []Scope, key Key,
) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("key %s exists already", key.ID)
	}
	hash := key.SecretHash()
	return []Event{Record(o, KeyCreated{
		KeyID: key.ID, OrgID: orgID, Label: label, Environment: key.Environment, Scopes: scopes,
		SecretHash: hash[:],
	})}, nil
}

// DecideRevokeKey revokes a key; it returns no event if the key is revoked already. It returns
// not_found for a key that does not exist and, unless orgID is empty, for another organization's.
func DecideRevokeKey(s KeyState, o Origin, orgID string) ([]Event, error) {
	if !s.Exists() || orgID != "" && s.OrgID != orgID {
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
			Scopes: f.Scopes, SecretHash: [32]byte(f.SecretHash), CreatedAt: e.At,
		}, nil
	case KeyRevoked:
		s.RevokedAt = e.At
		return s, nil
	default:
		return s, misplaced(e, "key")
	}
}

// ErrKeyNotFound returns the not_found error for an API key.
func ErrKeyNotFound() *Error { return Errorf(CodeNotFound, "no such API key") }
