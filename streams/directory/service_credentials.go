package directory

import (
	"context"

	"hubcloud/domain"
)

// SetCredential sets a code of a lock, or changes one, as domain.DecideSetCredential does, and returns
// the code with the command's Version.
func (s *Service) SetCredential(
	ctx context.Context, o domain.Origin, c domain.SetCredential,
) (domain.Credential, error) {
	o = s.stamp(o)
	decide := func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideSetCredential(h, o, c)
	}
	hub, _, err := s.updateHub(ctx, c.HubID, limitChanges(s, o, c.OrgID, decide))
	set, _ := hub.Credential(c.Version)
	return set, err
}

// RevokeCredential revokes a code, which is always allowed; version names the removal.
func (s *Service) RevokeCredential(
	ctx context.Context, o domain.Origin, org string, hub domain.HubID, at domain.CredentialSlot,
	version string,
) error {
	o = s.stamp(o)
	_, _, err := s.updateHub(ctx, hub, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideRevokeCredential(h, o, org, at, version)
	})
	return err
}

// ReportCredential records what has become of the version of a code at its lock; reason is empty for
// a success.
func (s *Service) ReportCredential(
	ctx context.Context, hub domain.HubID, version, reason, message string,
) error {
	o := s.stamp(domain.Origin{Actor: domain.Actor{Kind: domain.ActorService}})
	_, _, err := s.updateHub(ctx, hub, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideReportCredential(h, o, version, reason, message), nil
	})
	return err
}
