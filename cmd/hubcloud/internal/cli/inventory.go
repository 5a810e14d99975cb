package cli

import (
	"context"
	"fmt"
	"regexp"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// inventoryCommand groups the commands on the hubs that may enrol.
type inventoryCommand struct {
	Add      inventoryAddCommand      `cmd:"" help:"Register a hub by its serial and print its enrolment secret."`
	Generate inventoryGenerateCommand `cmd:"" help:"Register hubs with generated serials and print their enrolment secrets."`
	List     inventoryListCommand     `cmd:"" help:"List the hubs with their status and organization."`
	Rotate   inventoryRotateCommand   `cmd:"" help:"Replace a hub's enrolment secret and revoke its certificate."`
	Block    inventoryBlockCommand    `cmd:"" help:"Cut a hub's connections and reject its enrolments and connections."`
	Unblock  inventoryUnblockCommand  `cmd:"" help:"Let a blocked hub enrol and connect again."`
	Release  inventoryReleaseCommand  `cmd:"" help:"Remove a hub from its organization."`
}

type inventoryAddCommand struct {
	operatorCommand
	Serial string `help:"Serial of the hub, in any case, with or without dashes." required:"" placeholder:"SERIAL"`
}

// Run registers the hub.
func (c *inventoryAddCommand) Run(ctx context.Context, out Output) error {
	hub, err := parseSerial("--serial", c.Serial)
	if err != nil {
		return err
	}
	return c.withSession(ctx, func(ctx context.Context, s *installation.Session) error {
		secret := directory.NewEnrolmentSecret()
		err := s.Directory.RegisterHub(
			ctx, installation.OperatorOrigin(), hub, domain.HashEnrolmentSecret(secret),
		)
		if err != nil {
			return err
		}
		return c.printHub(out, hub, field{"secret", secret})
	})
}

// parseSerial parses a serial. The error is a installation.UsageError with the argument's name.
func parseSerial(argument, text string) (domain.HubID, error) {
	hub, ok := domain.ParseSerial(text)
	if !ok {
		return "", installation.Usagef(
			"%s %q is not a serial: a serial is a prefix of 2 to 12 letters and digits that "+
				"starts with a letter, then three groups of four, as in HUB-7K2M-Q4XD-93TA",
			argument,
			text,
		)
	}
	return hub, nil
}

type inventoryGenerateCommand struct {
	operatorCommand
	Count  int    `help:"Number of hubs." default:"1"`
	Prefix string `help:"Prefix of the hub ids: 2 to 12 lower-case letters and digits, starting with a letter." default:"hub"`
}

var prefixPattern = regexp.MustCompile(`^[a-z][a-z0-9]{1,11}$`)

// Run registers the hubs, and prints each as soon as it is registered.
func (c *inventoryGenerateCommand) Run(ctx context.Context, out Output) error {
	if c.Count < 1 {
		return installation.Usagef("--count %d: must be at least 1", c.Count)
	}
	if !prefixPattern.MatchString(c.Prefix) {
		return installation.Usagef(
			"--prefix %q: must be 2 to 12 lower-case letters and digits, starting with a letter",
			c.Prefix,
		)
	}
	s, err := installation.Connect(ctx, c.service())
	if err != nil {
		return err
	}
	defer s.Close()
	for made := range c.Count {
		hub, secret, err := s.Directory.GenerateHub(ctx, installation.OperatorOrigin(), c.Prefix)
		if err == nil {
			err = c.printHub(out, hub, field{"secret", secret})
		}
		if err != nil {
			return fmt.Errorf("after %d of %d hubs: %w", made, c.Count, err)
		}
	}
	return nil
}

// printHub prints a hub with further fields.
func (f outputFlags) printHub(out Output, hub domain.HubID, more ...field) error {
	fields := []field{{"serial", hub.Serial()}, {"hub_id", string(hub)}}
	return f.print(out.Out, append(fields, more...)...)
}
