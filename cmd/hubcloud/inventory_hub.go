package main

import (
	"context"
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

// inventoryHub names the hub that a command is about.
type inventoryHub struct {
	operator
	printed
	PostgresURL string `help:"Database of the service, instead of the one that postgres.json in --data-dir names: the command returns once lists show what it did." name:"postgres-url" placeholder:"URL"`
	Serial      string `arg:"" help:"Serial of the hub, in any case, with or without dashes."`
}

// change runs a command about the hub.
func (c *inventoryHub) change(
	ctx context.Context, command func(ctx context.Context, s *session, hub domain.HubID) error,
) error {
	hub, err := parseSerial("SERIAL", c.Serial)
	if err != nil {
		return err
	}
	return c.do(ctx, func(ctx context.Context, s *session) error {
		s.settleBy(ctx, c.operator, c.PostgresURL)
		return command(ctx, s, hub)
	})
}

// settleBy makes the session's commands wait for the read models too, if their database can be
// reached. Without it lists show what was done a moment later.
func (s *session) settleBy(ctx context.Context, o operator, url string) {
	if url == "" {
		db, err := dataDir(o.DataDir).database()
		if err != nil || o.NATSURL != "" {
			return
		}
		url = db.URL
	}
	models, err := s.readModels(ctx, url)
	if err != nil {
		return
	}
	s.service = directory.NewService(s.log, directory.ServiceConfig{
		Environment: s.settings.Environment, EverywhereApplied: s.barrier.Wait,
		Settled: func(ctx context.Context, seq uint64) error { return awaitProjected(ctx, models, seq) },
	})
}

// projectedPause is how long a command waits between two looks at the read models.
const projectedPause = 20 * time.Millisecond

// awaitProjected waits until the read models have the directory up to a sequence, unless they stand
// still.
func awaitProjected(ctx context.Context, models *projections.Control, seq uint64) error {
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
		case <-time.After(projectedPause):
		}
	}
}

type inventoryRotateCommand struct {
	inventoryHub
	KeepCertificate bool `help:"Leave the hub its certificate: for a secret that nobody else can have used. A hub that was enrolled with a stolen secret stays connected then."`
}

// Help is the longer text of --help.
func (*inventoryRotateCommand) Help() string {
	return `The former secret enrols nobody from then on, and the certificate that the hub has is revoked and its connection cut: whoever had the
secret may have got it. The hub is away until the new secret is put into it. With --keep-certificate it stays connected, and needs the new
secret when its certificate ends.`
}

// Run makes the new secret and prints it.
func (c *inventoryRotateCommand) Run(ctx context.Context, out Streams) error {
	return c.change(ctx, func(ctx context.Context, s *session, hub domain.HubID) error {
		secret, err := newEnrolmentSecret()
		if err != nil {
			return err
		}
		if _, err = s.service.RotateSecret(ctx, byOperator(), hub, hashEnrolmentSecret(secret), c.KeepCertificate); err != nil &&
			!errors.Is(err, directory.ErrNotSettled) {
			return err
		}
		// The new secret is shown whatever else fails: it is in force already.
		if !c.JSON {
			fmt.Fprintln(out.Err, "The secret is shown this once; only its hash is kept.")
		}
		err = errors.Join(
			err,
			c.print(
				out.Out, field{"serial", hub.Serial()}, field{"hub_id", string(hub)},
				field{"secret", secret},
			),
		)
		if !c.KeepCertificate {
			err = errors.Join(err, s.cutRevoked(ctx, hub))
		}
		return err
	})
}

// cutRevoked cuts the hub's connections with revoked certificates, and looks again until none can
// be left.
func (s *session) cutRevoked(ctx context.Context, hub domain.HubID) error {
	kicker := identity.NewKicker(s.conns, s.service, slog.New(slog.DiscardHandler), nil)
	if err := kicker.Kick(ctx, hub); err != nil {
		kicker.Close()
		return fmt.Errorf("done, but connections may still be there: %w", err)
	}
	kicker.Finish()
	return nil
}

type inventoryBlockCommand struct{ inventoryHub }

// Run blocks the hub.
func (c *inventoryBlockCommand) Run(ctx context.Context, out Streams) error {
	return c.change(ctx, func(ctx context.Context, s *session, hub domain.HubID) error {
		if _, err := s.service.BlockHub(ctx, byOperator(), hub); err != nil {
			return err
		}
		cut, err := identity.CutHub(ctx, s.conns, hub)
		if err != nil {
			return fmt.Errorf(
				"blocked, but connections may still be there; run the command again: %w", err,
			)
		}
		return c.print(
			out.Out, field{"serial", hub.Serial()}, field{"hub_id", string(hub)},
			field{"connections_cut", fmt.Sprint(cut)},
		)
	})
}

type inventoryUnblockCommand struct{ inventoryHub }

// Help is the longer text of --help.
func (*inventoryUnblockCommand) Help() string {
	return `A hub that was refused asks again within six hours, or at once when it is restarted.`
}

// Run ends the blocking of the hub.
func (c *inventoryUnblockCommand) Run(ctx context.Context, out Streams) error {
	return c.change(ctx, func(ctx context.Context, s *session, hub domain.HubID) error {
		if _, err := s.service.UnblockHub(ctx, byOperator(), hub); err != nil {
			return err
		}
		return c.print(out.Out, field{"serial", hub.Serial()}, field{"hub_id", string(hub)})
	})
}

type inventoryReleaseCommand struct{ inventoryHub }

// Help is the longer text of --help.
func (*inventoryReleaseCommand) Help() string {
	return `The organization has the hub no more: it is gone from its lists, its event streams end, and names and rooms of its devices are forgotten.
Whoever adds the hub next gets none of its events from before. The hub keeps its certificate and its secret; its connection is cut once, so
that it says anew where it stands. A hub that no organization has is left alone.`
}

// Run takes the hub away from its organization.
func (c *inventoryReleaseCommand) Run(ctx context.Context, out Streams) error {
	return c.change(ctx, func(ctx context.Context, s *session, hub domain.HubID) error {
		before, _, err := s.service.Hub(ctx, hub)
		if err != nil {
			return err
		}
		last, err := s.lastSequence(ctx, hub)
		if err != nil {
			return err
		}
		after, err := s.service.ReleaseHub(ctx, byOperator(), hub, last)
		if err != nil {
			return err
		}
		if after.Released != nil { // also when the command is given again because this failed
			if _, err := identity.Kick(ctx, s.conns, hub); err != nil {
				return fmt.Errorf(
					"released, but its connection may still be there; run the command again: %w",
					err,
				)
			}
		}
		return c.print(
			out.Out, field{"serial", hub.Serial()}, field{"hub_id", string(hub)},
			field{"former_org_id", before.OrgID},
		)
	})
}

// lastSequence returns the last sequence of the hub's stream.
func (s *session) lastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	logs, err := hublog.New(s.conns, hublog.Config{
		Retention:   hublog.MinRetention,
		Incarnation: func(domain.HubID) (hublog.Incarnation, bool) { return hublog.Incarnation{}, false },
		Log:         slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	defer logs.Close()
	return logs.LastSequence(ctx, hub)
}
