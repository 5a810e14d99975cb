package directory

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"hubcloud/domain"
)

// CreateKey creates an API key of an organization and returns its id and the key itself, which is
// stored nowhere. When it returns, the key works on every replica, or one did not confirm that in
// time. The label may be empty. It returns not_found for an unknown organization, invalid_request
// for what is not valid, and rate_limited for a key over Quotas.KeysPerOrg.
func (s *Service) CreateKey(
	ctx context.Context, o domain.Origin, orgID, label string, scopes []domain.Scope,
	limits domain.KeyLimits,
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
	if limits, err = limits.Clean(scopes, o.At); err != nil {
		return "", "", err
	}
	if err := s.checkSites(ctx, orgID, limits.Sites); err != nil {
		return "", "", err
	}
	made := s.newKey()
	defer s.quotas.creations.lock(ctx, "keys "+orgID)()
	if err := s.checkKeyQuota(o, orgID); err != nil {
		return "", "", err
	}
	decide := func(k domain.KeyState) ([]domain.Event, error) {
		return domain.DecideCreateKey(k, o, orgID, label, scopes, limits, made)
	}
	_, seq, err := s.keys.Update(ctx, made.ID, limitChanges(s, o, orgID, decide))
	if err != nil {
		return "", "", err
	}
	s.awaitGranted(ctx, seq)
	return made.ID, made.Reveal(), nil
}

// newKey returns a new key.
func (s *Service) newKey() domain.Key {
	var entropy [domain.KeyEntropy]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return domain.NewKey(s.cfg.Environment, entropy)
}

// ChangeKey sets the limits of a key. When it returns nil, every replica acts by them. It returns
// invalid_request for limits that are not valid, and not_found for an unknown or revoked key and,
// unless orgID is empty, for another organization's.
func (s *Service) ChangeKey(
	ctx context.Context, o domain.Origin, keyID, orgID string, limits domain.KeyLimits,
) error {
	o = s.stamp(o)
	seq, err := s.updateKey(ctx, o, keyID, func(k domain.KeyState) ([]domain.Event, error) {
		events, err := domain.DecideChangeKey(k, o, orgID, limits)
		if err == nil {
			err = s.checkSites(ctx, k.OrgID, limits.Sites)
		}
		return events, err
	})
	if err != nil {
		return err
	}
	return s.awaitInForce(ctx, seq)
}

// RotateKey replaces the secret of a key and returns the key with the new one, which is stored nowhere. The
// former secret works for the time overlap. It fails as ChangeKey does, but succeeds with an overlap
// also if a replica has not confirmed the new secret in time: the key can be shown only once.
func (s *Service) RotateKey(
	ctx context.Context, o domain.Origin, keyID, orgID string, overlap time.Duration,
) (key string, err error) {
	o = s.stamp(o)
	next := s.newKey().WithID(keyID)
	seq, err := s.updateKey(ctx, o, keyID, func(k domain.KeyState) ([]domain.Event, error) {
		return domain.DecideRotateKey(k, o, orgID, next, overlap)
	})
	switch {
	case err != nil:
		return "", err
	case overlap > 0:
		s.awaitGranted(ctx, seq)
	default:
		err = s.awaitInForce(ctx, seq)
	}
	return next.Reveal(), err
}

// MailKeyExpiry records that people were mailed about the expiry of a key.
func (s *Service) MailKeyExpiry(ctx context.Context, keyID string) error {
	o := s.stamp(domain.Origin{Actor: domain.Actor{Kind: domain.ActorService}})
	_, _, err := s.keys.Update(ctx, keyID, func(k domain.KeyState) ([]domain.Event, error) {
		return domain.DecideMailKeyExpiry(k, o)
	})
	return err
}

// Key returns a key with every change that was acknowledged before the call, the zero state for an
// unknown one.
func (s *Service) Key(ctx context.Context, keyID string) (domain.KeyState, error) {
	if !domain.IsKeyID(keyID) {
		return domain.KeyState{}, nil
	}
	key, _, err := s.keys.Get(ctx, keyID)
	return key, err
}

// updateKey changes a key, within the changes that its organization may make.
func (s *Service) updateKey(
	ctx context.Context, o domain.Origin, keyID string,
	decide func(domain.KeyState) ([]domain.Event, error),
) (seq uint64, err error) {
	if !domain.IsKeyID(keyID) {
		return 0, domain.ErrKeyNotFound()
	}
	_, seq, err = s.keys.Update(ctx, keyID, func(k domain.KeyState) ([]domain.Event, error) {
		return limitChanges(s, o, k.OrgID, decide)(k)
	})
	return seq, err
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
