package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"hubcloud/domain"
)

// inventoryCommand holds the commands about the hubs that may enrol.
type inventoryCommand struct {
	Add      inventoryAddCommand      `cmd:"" help:"Register a hub by its Serial, and make its enrolment secret."`
	Generate inventoryGenerateCommand `cmd:"" help:"Make up hubs: Serials with their enrolment secrets."`
	List     inventoryListCommand     `cmd:"" help:"List the hubs: whether each has enrolled, is blocked, and whose it is."`
	Rotate   inventoryRotateCommand   `cmd:"" help:"Make a new enrolment secret for a hub, and revoke its certificate. The former secret is worth nothing then."`
	Block    inventoryBlockCommand    `cmd:"" help:"Keep a hub from enrolling and connecting, at once, and cut its connections."`
	Unblock  inventoryUnblockCommand  `cmd:"" help:"Let a blocked hub enrol and connect again."`
	Release  inventoryReleaseCommand  `cmd:"" help:"Take a hub away from the organization that added it, as if it had never been added."`
}

type inventoryAddCommand struct {
	operator
	printed
	Serial string `help:"Serial of the hub, in any case, with or without dashes." required:"" placeholder:"SERIAL"`
}

// Run registers the hub.
func (c *inventoryAddCommand) Run(ctx context.Context, out Streams) error {
	hub, err := parseSerial("--serial", c.Serial)
	if err != nil {
		return err
	}
	return c.do(ctx, func(ctx context.Context, s *session) error {
		return s.register(ctx, hub, c.printed, out)
	})
}

// parseSerial reads a Serial that was typed.
func parseSerial(name, text string) (domain.HubID, error) {
	hub, ok := domain.ParseSerial(text)
	if !ok {
		return "", usagef(
			"%s %q is no Serial: a prefix of 2 to 12 letters and digits that starts with a "+
				"letter, then three groups of four, as in HUB-7K2M-Q4XD-93TA",
			name,
			text,
		)
	}
	return hub, nil
}

type inventoryGenerateCommand struct {
	operator
	printed
	Count  int    `help:"How many." default:"1"`
	Prefix string `help:"Prefix of their ids: 2 to 12 lower-case letters and digits, a letter first." default:"hub"`
}

var prefixPattern = regexp.MustCompile(`^[a-z][a-z0-9]{1,11}$`)

// Run makes up the hubs, and prints each as soon as it is registered.
func (c *inventoryGenerateCommand) Run(ctx context.Context, out Streams) error {
	if c.Count < 1 {
		return usagef("--count %d: at least 1", c.Count)
	}
	if !prefixPattern.MatchString(c.Prefix) {
		return usagef(
			"--prefix %q: 2 to 12 lower-case letters and digits, a letter first", c.Prefix,
		)
	}
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer s.conns.Close()
	for made := range c.Count {
		if err := c.generate(ctx, s, out); err != nil {
			return fmt.Errorf("after %d of %d hubs: %w", made, c.Count, err)
		}
	}
	return nil
}

// inventTries is how often an id is made up that a hub has already. One of 10^17 is taken by chance
// once at most; whatever else is wrong with a hub does not get better.
const inventTries = 3

func (c *inventoryGenerateCommand) generate(ctx context.Context, s *session, out Streams) error {
	for try := 1; ; try++ {
		hub, err := inventHub(c.Prefix)
		if err != nil {
			return err
		}
		err = s.register(ctx, hub, c.printed, out)
		if try == inventTries || !errors.Is(err, &domain.Error{Code: domain.CodeInvalidRequest}) {
			return err
		}
	}
}

// register puts a hub into the inventory with a new secret, and prints both.
func (s *session) register(ctx context.Context, hub domain.HubID, p printed, out Streams) error {
	secret, err := newEnrolmentSecret()
	if err != nil {
		return err
	}
	if err := s.service.RegisterHub(ctx, byOperator(), hub, hashEnrolmentSecret(secret)); err != nil {
		return err
	}
	return p.print(
		out.Out, field{"serial", hub.Serial()}, field{"hub_id", string(hub)},
		field{"secret", secret},
	)
}

// newEnrolmentSecret makes a hub's enrolment secret as the hub link writes it: 32 random bytes,
// base64url without padding.
func newEnrolmentSecret() (string, error) {
	var entropy [32]byte
	if _, err := rand.Read(entropy[:]); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(entropy[:]), nil
}

// hashEnrolmentSecret gives the hash that the directory keeps of a secret: of its text, as the hub
// shows it.
func hashEnrolmentSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// inventHub makes up a hub id. Letters that are easily misread on a label are left out.
func inventHub(prefix string) (domain.HubID, error) {
	const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"
	var entropy [12]byte
	if _, err := rand.Read(entropy[:]); err != nil {
		return "", err
	}
	for i, b := range entropy {
		entropy[i] = alphabet[int(b)%len(alphabet)]
	}
	id := fmt.Sprintf("%s-%s-%s-%s", prefix, entropy[:4], entropy[4:8], entropy[8:])
	hub, ok := domain.ParseHubID(id)
	if !ok {
		return "", usagef("--prefix %q makes no hub id", prefix)
	}
	return hub, nil
}
