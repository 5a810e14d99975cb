package domain

import (
	"fmt"
	"slices"
	"time"
)

// KeyState is an API key as its events leave it. The zero value is no key.
type KeyState struct {
	ID          string
	OrgID       string
	Label       string
	Environment string
	Scopes      []Scope
	SecretHash  [32]byte
	CreatedAt   time.Time
	// RevokedAt is zero while the key is in force.
	RevokedAt time.Time
}

// Exists says whether there ever was such a key.
func (s KeyState) Exists() bool { return s.ID != "" }

// Revoked says whether the key was ended.
func (s KeyState) Revoked() bool { return !s.RevokedAt.IsZero() }

// CleanScopes takes the scopes that a key is to have and gives them once each, in the contract's
// order. None at all, and one that there is not, are an invalid_request that names those that are
// allowed.
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

// DecideCreateKey makes a key for an organization. Label and scopes are given clean.
func DecideCreateKey(
	s KeyState, o Origin, orgID, label string, scopes []Scope, key Key,
) ([]Event, error) {
	if s.Exists() {
		return nil, fmt.Errorf("key %s is there already", key.ID)
	}
	hash := key.SecretHash()
	return []Event{Record(o, KeyCreated{
		KeyID: key.ID, OrgID: orgID, Label: label, Environment: key.Environment, Scopes: scopes,
		SecretHash: hash[:],
	})}, nil
}

// DecideRevokeKey ends a key; one that is ended already is no event. orgID limits it to the keys of
// one organization, empty to none; a key that does not exist there is not_found.
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
			return s, fmt.Errorf("event %s (%s): a secret's hash of %d bytes", e.ID, e.Type, len(f.SecretHash))
		}
		return KeyState{
			ID: f.KeyID, OrgID: f.OrgID, Label: f.Label, Environment: f.Environment,
			Scopes:     f.Scopes,
			SecretHash: [32]byte(f.SecretHash), CreatedAt: e.At,
		}, nil
	case KeyRevoked:
		s.RevokedAt = e.At
		return s, nil
	default:
		return s, misplaced(e, "key")
	}
}

// ErrKeyNotFound is the refusal for a key that does not exist.
func ErrKeyNotFound() *Error { return Errorf(CodeNotFound, "no such API key") }
