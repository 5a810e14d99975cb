package directory

import (
	"context"
	"crypto/rand"
	"fmt"

	"hubcloud/domain"
)

// CreateKey makes an API key for an organization and gives its id and the key itself, which is kept
// nowhere. It works on every replica when CreateKey returns. The label may be empty.
func (s *Service) CreateKey(
	ctx context.Context, o domain.Origin, orgID, label string, scopes []domain.Scope,
) (keyID, key string, err error) {
	if label, err = domain.CleanLabel("label", label); err != nil {
		return "", "", err
	}
	if scopes, err = domain.CleanScopes(scopes); err != nil {
		return "", "", err
	}
	if _, err := s.org(ctx, orgID); err != nil {
		return "", "", err
	}
	if !domain.IsEnvironment(s.cfg.Environment) {
		return "", "", fmt.Errorf(
			"directory: keys of the environment %q cannot be made", s.cfg.Environment,
		)
	}
	o = s.stamp(o)
	var entropy [domain.KeyEntropy]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	made := domain.NewKey(s.cfg.Environment, entropy)
	defer s.quotas.turns.take(ctx, "keys "+orgID)()
	if err := s.admitKey(o, orgID); err != nil {
		return "", "", err
	}
	_, seq, err := s.keys.Update(
		ctx,
		made.ID,
		counted(s, o, orgID, func(k domain.KeyState) ([]domain.Event, error) {
			return domain.DecideCreateKey(k, o, orgID, label, scopes, made)
		}),
	)
	if err != nil {
		return "", "", err
	}
	s.granted(ctx, seq)
	return made.ID, made.Reveal(), nil
}

// RevokeKey ends a key: when it returns nil, no replica takes the key any more. orgID limits it to
// the keys of one organization; empty does not. A key that is not there is not_found; one that is
// revoked already is revoked.
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
	return s.inForce(ctx, seq)
}
