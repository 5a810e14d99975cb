package directory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"hubcloud/domain"
)

// The commands of operators about the inventory: the hubs that may enrol. They return not_found for
// a hub that is not in the inventory.

// generateTries is how many random ids GenerateHub tries. A random id is so rarely in use that a
// repeated rejection has another cause.
const generateTries = 3

// RegisterHub adds a hub to the inventory with the domain.HashEnrolmentSecret of its enrolment
// secret. It returns invalid_request for a hub that is in the inventory already, and for the id of a
// virtual hub.
func (s *Service) RegisterHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID, secretHash []byte,
) error {
	if hubID.Virtual() {
		return errVirtual()
	}
	return s.registerHub(ctx, o, hubID, secretHash)
}

func errVirtual() error {
	return domain.Errorf(
		domain.CodeInvalidRequest,
		"serial: VIRTUAL-… is for virtual hubs, which the service registers and gives a secret itself",
	)
}

func (s *Service) registerHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID, secretHash []byte,
) error {
	if _, ok := domain.ParseHubID(string(hubID)); !ok {
		return domain.Errorf(
			domain.CodeInvalidRequest, "serial: is no Serial; one looks like HUB-7K2M-Q4XD-93TA",
		)
	}
	o = s.stamp(o)
	_, _, err := s.updateHub(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideRegisterHub(h, o, hubID, secretHash)
	})
	return err
}

// GenerateHub registers a hub with a random id that begins with the prefix, and returns it with its
// new enrolment secret, which is stored nowhere. It returns invalid_request for a prefix that no
// hub id can have.
func (s *Service) GenerateHub(
	ctx context.Context, o domain.Origin, prefix string,
) (hubID domain.HubID, secret string, err error) {
	for try := 1; ; try++ {
		var entropy [12]byte
		rand.Read(entropy[:]) // never fails: it ends the program instead
		hubID, ok := domain.NewHubID(prefix, entropy)
		if !ok {
			return "", "", domain.Errorf(
				domain.CodeInvalidRequest,
				"prefix: must be 2 to 12 lower-case letters and digits, and begin with a letter",
			)
		}
		secret := NewEnrolmentSecret()
		err := s.RegisterHub(ctx, o, hubID, domain.HashEnrolmentSecret(secret))
		if err == nil {
			return hubID, secret, nil
		}
		if try == generateTries || domain.CodeOf(err) != domain.CodeInvalidRequest {
			return "", "", err
		}
	}
}

// NewEnrolmentSecret returns a random enrolment secret as hubs show it.
func NewEnrolmentSecret() string {
	var entropy [32]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return domain.NewEnrolmentSecret(entropy)
}

// RotateSecret replaces a hub's enrolment secret and returns the new one, which is stored nowhere.
// Unless keepCertificate is set it also revokes the hub's certificates and cuts its connections,
// for which it uses ServiceConfig.Connections. If it returns both a secret and an error, the new
// secret is stored and the only valid one, and the error names the step after it that failed. It
// returns invalid_request for a virtual hub.
func (s *Service) RotateSecret(
	ctx context.Context, o domain.Origin, hubID domain.HubID, keepCertificate bool,
) (secret string, err error) {
	if s.cfg.Connections == nil && !keepCertificate {
		return "", errNoConnections("RotateSecret")
	}
	if hubID.Virtual() {
		return "", errVirtual()
	}
	o = s.stamp(o)
	secret = NewEnrolmentSecret()
	hub, err := s.updateInventory(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideRotateSecret(h, o, domain.HashEnrolmentSecret(secret), keepCertificate)
	})
	if err != nil && !errors.Is(err, ErrNotInForce) {
		return "", err
	}
	if !keepCertificate && len(hub.RevokedCertificates) > 0 {
		cutErr := s.cfg.Connections.DisconnectRevoked(ctx, hubID, hub.RevokedCertificates)
		if cutErr != nil {
			err = errors.Join(
				err, fmt.Errorf("done, but connections may still be open: %w", cutErr),
			)
		}
	}
	return secret, err
}

// BlockHub keeps a hub from enrolling and connecting, cuts its connections, and returns how many it
// cut. It may be called again for a blocked hub. It uses ServiceConfig.Connections.
func (s *Service) BlockHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID,
) (cut int, err error) {
	if s.cfg.Connections == nil {
		return 0, errNoConnections("BlockHub")
	}
	o = s.stamp(o)
	_, err = s.updateInventory(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideBlockHub(h, o)
	})
	if err != nil {
		return 0, err
	}
	if cut, err = s.cfg.Connections.DisconnectBlocked(ctx, hubID); err != nil {
		return cut, fmt.Errorf(
			"blocked, but connections may still be open; run the command again: %w", err,
		)
	}
	return cut, nil
}

// UnblockHub allows a blocked hub to enrol and connect again. It changes nothing for a hub that is
// not blocked.
func (s *Service) UnblockHub(ctx context.Context, o domain.Origin, hubID domain.HubID) error {
	o = s.stamp(o)
	_, err := s.updateInventory(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideUnblockHub(h, o)
	})
	return err
}

// ReleaseHub takes a hub away from its organization, as if it had never been added, cuts its
// connections, and returns the former organization; "" for a hub without one. It may be called
// again. It uses ServiceConfig.Logs and Connections.
func (s *Service) ReleaseHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID,
) (formerOrgID string, err error) {
	before, _, err := s.Hub(ctx, hubID)
	if err != nil {
		return "", err
	}
	o = s.stamp(o)
	hub, err := s.release(ctx, hubID, func(h domain.HubState, last uint64) ([]domain.Event, error) {
		return domain.DecideReleaseHub(h, o, last)
	})
	if err != nil {
		return "", err
	}
	if hub.Released == nil {
		return before.OrgID, nil
	}
	// Also when the hub was released by an earlier call, which may have failed here.
	if err := s.cfg.Connections.Disconnect(ctx, hubID); err != nil {
		return "", fmt.Errorf(
			"released, but its connection may still be open; run the command again: %w", err,
		)
	}
	return before.OrgID, nil
}

// release updates a hub by a decision that gets the last sequence of the hub's stream, and waits
// until the decision is in force.
func (s *Service) release(
	ctx context.Context, hubID domain.HubID,
	decide func(h domain.HubState, last uint64) ([]domain.Event, error),
) (domain.HubState, error) {
	if s.cfg.Connections == nil || s.cfg.Logs == nil {
		return domain.HubState{}, errors.New(
			"directory: releasing a hub needs ServiceConfig.Logs and Connections",
		)
	}
	last, err := s.cfg.Logs.LastSequence(ctx, hubID)
	if err != nil {
		return domain.HubState{}, err
	}
	return s.updateInventory(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return decide(h, last)
	})
}

// updateInventory is updateHub followed by awaitInForce.
func (s *Service) updateInventory(
	ctx context.Context, hubID domain.HubID, decide func(domain.HubState) ([]domain.Event, error),
) (domain.HubState, error) {
	hub, seq, err := s.updateHub(ctx, hubID, decide)
	if err != nil {
		return hub, err
	}
	return hub, s.awaitInForce(ctx, seq)
}

func errNoConnections(command string) error {
	return fmt.Errorf("directory: %s needs ServiceConfig.Connections", command)
}
