package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
)

// hubFlags name the hub that a command changes.
type hubFlags struct {
	operatorCommand
	PostgresURL string `help:"Database of the service, instead of that in postgres.json in --data-dir. The command returns once lists show the change." name:"postgres-url" placeholder:"URL"`
	Serial      string `arg:"" help:"Serial of the hub, in any case, with or without dashes."`
}

// withHub runs a command on the hub.
func (f *hubFlags) withHub(
	ctx context.Context,
	command func(ctx context.Context, s *installation.Session, hub domain.HubID) error,
) error {
	hub, err := parseSerial("SERIAL", f.Serial)
	if err != nil {
		return err
	}
	return f.withSession(ctx, func(ctx context.Context, s *installation.Session) error {
		f.waitForReadModels(ctx, s)
		return command(ctx, s, hub)
	})
}

// waitForReadModels makes the session wait for the read models if their database can be reached.
// Otherwise lists may show the change a moment later.
func (f *hubFlags) waitForReadModels(ctx context.Context, s *installation.Session) {
	if f.NATSURL != "" && f.PostgresURL == "" {
		return // the data directory may be another service's
	}
	url, err := f.databaseURL(f.PostgresURL)
	if err != nil {
		return
	}
	if models, err := s.ReadModels(ctx, url); err == nil {
		s.WaitForReadModels(models)
	}
}

type inventoryRotateCommand struct {
	hubFlags
	KeepCertificate bool `help:"Keep the hub's certificate. Use it only if nobody else can have used the secret: a hub that enrolled with a stolen secret stays connected."`
}

// Run replaces the secret and prints the new one.
func (c *inventoryRotateCommand) Run(ctx context.Context, out Output) error {
	return c.withHub(ctx, func(ctx context.Context, s *installation.Session, hub domain.HubID) error {
		secret, err := s.Directory.RotateSecret(ctx, installation.OperatorOrigin(), hub, c.KeepCertificate)
		if secret == "" {
			return err
		}
		// The new secret is in force, so it is printed whatever else fails.
		if !c.JSON {
			fmt.Fprintln(out.Err, "The secret is shown only once; the cloud keeps a hash of it.")
		}
		return errors.Join(err, c.printHub(out, hub, field{"secret", secret}))
	})
}

type inventoryBlockCommand struct{ hubFlags }

// Run blocks the hub.
func (c *inventoryBlockCommand) Run(ctx context.Context, out Output) error {
	return c.withHub(ctx, func(ctx context.Context, s *installation.Session, hub domain.HubID) error {
		cut, err := s.Directory.BlockHub(ctx, installation.OperatorOrigin(), hub)
		if err != nil {
			return err
		}
		return c.printHub(out, hub, field{"connections_cut", strconv.Itoa(cut)})
	})
}

type inventoryUnblockCommand struct{ hubFlags }

// Run unblocks the hub.
func (c *inventoryUnblockCommand) Run(ctx context.Context, out Output) error {
	return c.withHub(ctx, func(ctx context.Context, s *installation.Session, hub domain.HubID) error {
		if err := s.Directory.UnblockHub(ctx, installation.OperatorOrigin(), hub); err != nil {
			return err
		}
		return c.printHub(out, hub)
	})
}

type inventoryReleaseCommand struct{ hubFlags }

// Run releases the hub.
func (c *inventoryReleaseCommand) Run(ctx context.Context, out Output) error {
	return c.withHub(ctx, func(ctx context.Context, s *installation.Session, hub domain.HubID) error {
		former, err := s.Directory.ReleaseHub(ctx, installation.OperatorOrigin(), hub)
		if err != nil {
			return err
		}
		return c.printHub(out, hub, field{"former_org_id", former})
	})
}
