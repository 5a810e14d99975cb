package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/projections"
	"hubcloud/streams/directory"
	"hubcloud/streams/hublog"
)

// NewEnrolmentSecret returns a new enrolment secret in the form that the hub link uses: 32 random
// bytes in base64url without padding.
func NewEnrolmentSecret() string {
	var entropy [32]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(entropy[:])
}

// HashEnrolmentSecret returns the hash that the directory keeps of a secret.
func HashEnrolmentSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// NewHubID returns a random hub id with a prefix. The id avoids letters that are easily misread on
// a label. ok is false when the prefix is not allowed in a hub id.
func NewHubID(prefix string) (hub domain.HubID, ok bool) {
	const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
	var entropy [12]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	for i, b := range entropy {
		entropy[i] = alphabet[int(b)%len(alphabet)]
	}
	return domain.ParseHubID(
		fmt.Sprintf("%s-%s-%s-%s", prefix, entropy[:4], entropy[4:8], entropy[8:]),
	)
}

// RegisterHub adds a hub to the inventory and returns its enrolment secret. The error is
// domain.CodeInvalidRequest when the inventory has the hub already.
func (s *Session) RegisterHub(ctx context.Context, hub domain.HubID) (secret string, err error) {
	secret = NewEnrolmentSecret()
	return secret, s.Directory.RegisterHub(ctx, Origin(), hub, HashEnrolmentSecret(secret))
}

// RotateSecret replaces a hub's enrolment secret. Unless keepCertificate is set, it also revokes
// the hub's certificate; the caller then calls CutRevoked. secret is "" when nothing was changed.
// When the secret is in force but not every replica has confirmed the change, RotateSecret returns
// both the secret and directory.ErrNotSettled.
func (s *Session) RotateSecret(
	ctx context.Context, hub domain.HubID, keepCertificate bool,
) (secret string, err error) {
	secret = NewEnrolmentSecret()
	_, err = s.Directory.RotateSecret(
		ctx, Origin(), hub, HashEnrolmentSecret(secret), keepCertificate,
	)
	if err != nil && !errors.Is(err, directory.ErrNotSettled) {
		return "", err
	}
	return secret, err
}

// CutRevoked cuts the hub's connections with revoked certificates, and repeats the check until none
// can be left.
func (s *Session) CutRevoked(ctx context.Context, hub domain.HubID) error {
	kicker := identity.NewKicker(s.Conns, s.Directory, slog.New(slog.DiscardHandler), nil)
	if err := kicker.Kick(ctx, hub); err != nil {
		kicker.Close()
		return fmt.Errorf("the certificate is revoked, but connections may remain: %w", err)
	}
	kicker.Finish()
	return nil
}

// BlockHub blocks a hub and returns how many of its connections were cut.
func (s *Session) BlockHub(ctx context.Context, hub domain.HubID) (cut int, err error) {
	if _, err := s.Directory.BlockHub(ctx, Origin(), hub); err != nil {
		return 0, err
	}
	cut, err = identity.CutHub(ctx, s.Conns, hub)
	if err != nil {
		return 0, fmt.Errorf(
			"the hub is blocked, but connections may remain; run the command again: %w", err,
		)
	}
	return cut, nil
}

// ReleaseHub removes a hub from its organization, whose id it returns, and cuts the hub's
// connection, so that the hub reports its log again. It does nothing to a hub without an
// organization.
func (s *Session) ReleaseHub(ctx context.Context, hub domain.HubID) (formerOrg string, err error) {
	before, _, err := s.Directory.Hub(ctx, hub)
	if err != nil {
		return "", err
	}
	last, err := s.lastSequence(ctx, hub)
	if err != nil {
		return "", err
	}
	after, err := s.Directory.ReleaseHub(ctx, Origin(), hub, last)
	if err != nil {
		return "", err
	}
	// A repeated command cuts again, in case the first one failed here.
	if after.Released != nil {
		if _, err := identity.Kick(ctx, s.Conns, hub); err != nil {
			return "", fmt.Errorf(
				"the hub is released, but its connection may remain; run the command again: %w",
				err,
			)
		}
	}
	return before.OrgID, nil
}

// lastSequence returns the last sequence of the hub's stream.
func (s *Session) lastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	logs, err := hublog.New(s.Conns, hublog.Config{
		Retention: hublog.MinRetention,
		Epoch:     func(domain.HubID) (domain.Epoch, bool) { return domain.Epoch{}, false },
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	defer logs.Close()
	return logs.LastSequence(ctx, hub)
}

// projectedPoll is the pause between two looks at the read models.
const projectedPoll = 20 * time.Millisecond

// WaitForReadModels makes the session's changes wait until the read models show them. Stopped
// projections do not delay a change.
func (s *Session) WaitForReadModels(models *projections.Control) {
	s.Directory = directory.NewService(s.Log, directory.ServiceConfig{
		Environment: s.Settings.Environment, EverywhereApplied: s.barrier.Wait,
		Settled: func(ctx context.Context, seq uint64) error {
			return waitProjected(ctx, models, seq)
		},
	})
}

// waitProjected waits until the read models have the directory up to a sequence. The error is
// directory.ErrStandingStill when the projection does not run.
func waitProjected(ctx context.Context, models *projections.Control, seq uint64) error {
	for {
		all, err := models.Status(ctx)
		if err != nil {
			return err
		}
		for _, p := range all {
			switch {
			case p.Name != projections.DirectoryProjection:
			case p.Sequence >= seq:
				return nil
			case p.State != projections.StateRunning:
				return directory.ErrStandingStill
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(projectedPoll):
		}
	}
}
