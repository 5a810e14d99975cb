package directory

import (
	"context"
	"crypto/rand"
	"fmt"

	"hubcloud/domain"
)

// CreateKey creates an API key of an organization and returns its id and the key itself, which is
// stored nowhere. When it returns, the key works on every replica, or one did not confirm that in
// time. The label may be empty. It returns not_found for an unknown organization, and rate_limited
// for a key over Quotas.KeysPerOrg.
func (s *Service) CreateKey(
	ctx context.Context, o domain.Origin, orgID, label string, scopes []domain.Scope,
) (keyID, key string, err error) {
	if label, err = domain.CleanLabel("label", label); err != nil {
		return "", "", err
	}
	if scopes, err = domain.CleanScopes(scopes); err != nil {
		return "", "", err
	}
	if _, err := s.Org(ctx, orgID); err != nil {
		return "", "", err
	}
	if !domain.IsEnvironment(s.cfg.Environment) {
		return "", "", fmt.Errorf("directory: environment: %q has no API keys", s.cfg.Environment)
	}
	o = s.stamp(o)
	var entropy [domain.KeyEntropy]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	made := domain.NewKey(s.cfg.Environment, entropy)
	defer s.quotas.creations.lock(ctx, "keys "+orgID)()
	if err := s.checkKeyQuota(o, orgID); err != nil {
		return "", "", err
	}
	decide := func(k domain.KeyState) ([]domain.Event, error) {
		return domain.DecideCreateKey(k, o, orgID, label, scopes, made)
	}
	_, seq, err := s.keys.Update(ctx, made.ID, limitChanges(s, o, orgID, decide))
	if err != nil {
		return "", "", err
	}
	s.awaitGranted(ctx, seq)
	return made.ID, made.Reveal(), nil
}

// RevokeKey revokes a key. When it returns nil, no replica accepts the key any more. It may be
// repeated. It returns not_found for an unknown key and, unless orgID is empty, for another
// organization's.
func (s *Service) RevokeKey(ctx context.Context, o domain.Origin, keyID, orgID string) error {
	if !domain.IsKeyID(keyID) {
		return domain.ErrKeyNotFound()
	}
	o = s.stamp(o)
	_, seq, err := s.keys.Update(ctx, keyID, func(k domain.KeyState) ([]domain.Event, error) {
		return domain.DecideRevokeKey(k, o, orgID)
	})
	if err != nil {
		return err
	}
	return s.awaitInForce(ctx, seq)
}
