package cli

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/durablefile"
	"hubcloud/streams/tap"
	"hubcloud/streams/tapuser"
)

// tapCredentialsCommand makes, renews, revokes and lists credentials of taps.
type tapCredentialsCommand struct {
	operatorFlags
	outputFlags
	Name   string `help:"Name of the new credentials, such as who gets them; made up when not given." placeholder:"NAME" xor:"what"`
	Rotate string `help:"Make a new password for the credentials of this name. The old one is worth nothing then, and its connections are cut." placeholder:"NAME" xor:"what"`
	Revoke string `help:"Take away the credentials of this name, at once, and cut their connections." placeholder:"NAME" xor:"what"`
	List   bool   `help:"List all credentials." xor:"what"`
	Out    string `help:"Write the credentials to this file instead of printing them; only its owner may read it." placeholder:"FILE" type:"path"`
	URL    string `help:"Address of the broker to put into the credentials, as those who get them reach it; by default the one that is used here." placeholder:"URL" name:"url"`
}

// Help is the longer text of --help.
func (*tapCredentialsCommand) Help() string {
	return `Makes credentials with which one can hear the feed of every hub log and read the logs, and can do nothing else: no publishing, no consumers,
nothing of other accounts. Each user of the data should get credentials of its own.

The file is for "hubcloud tap --nats-credentials FILE", and is a context of the nats command line as well:

  hubcloud tap credentials --name analytics --out tap.json
  hubcloud tap --nats-credentials tap.json --follow
  nats --context $PWD/tap.json sub 'feed.>'

  hubcloud tap credentials --rotate analytics --out tap.json
  hubcloud tap credentials --revoke analytics`
}

// Validate checks what the flags say together.
func (c *tapCredentialsCommand) Validate() error {
	if (c.Out != "" || c.URL != "") && (c.List || c.Revoke != "") {
		return usage.Errorf(
			"--out and --url are for credentials that are made: with --list and --revoke there are none",
		)
	}
	return nil
}

// Run does what the flags say.
func (c *tapCredentialsCommand) Run(ctx context.Context, out Streams) error {
	err := c.do(ctx, func(ctx context.Context, s *operator.Session) error {
		users := tapuser.New(s.Conns.Cloud, s.Buckets.Installation)
		switch {
		case c.List:
			return c.list(ctx, out, users)
		case c.Revoke != "":
			return c.revoke(ctx, out, s, users)
		default:
			return c.make(ctx, out, s, users)
		}
	})
	if errors.Is(err, tapuser.ErrName) || errors.Is(err, tapuser.ErrExists) ||
		errors.Is(err, tapuser.ErrFull) ||
		errors.Is(err, tapuser.ErrUnknown) {
		return usage.Wrap(err)
	}
	return err
}

// make makes credentials, new ones or in the place of others.
func (c *tapCredentialsCommand) make(
	ctx context.Context, out Streams, s *operator.Session, users *tapuser.Store,
) error {
	name, verb := c.Name, users.Create
	switch {
	case c.Rotate != "":
		name, verb = c.Rotate, users.Renew
	case name == "":
		name = madeUpName()
	}
	user, err := verb(ctx, name, time.Now())
	if err != nil {
		return err
	}
	if c.Rotate != "" {
		account, err := users.Account(ctx, name)
		if err == nil {
			_, err = identity.KickTap(ctx, s.Conns, account, user.User)
		}
		if err != nil {
			return fmt.Errorf(
				"the password is another, but connections with the old one may still be there: %w",
				err,
			)
		}
	}
	service, err := c.service().Credentials()
	if err != nil {
		return err
	}
	return c.give(out, name, service, user)
}

// give prints credentials, or writes them to the file.
func (c *tapCredentialsCommand) give(
	out Streams, name string, service streams.Credentials, user streams.User,
) error {
	credentials := tap.ForUser(service.URL, service.Shards, user)
	credentials.Authority = service.Authority
	if c.URL != "" {
		credentials.URL = c.URL
	}
	text, err := json.MarshalIndent(credentials, "", "  ")
	if err != nil {
		return err
	}
	if c.Out == "" {
		if c.JSON {
			return printJSON(out.Out, credentials)
		}
		fmt.Fprintf(
			out.Err, "The password of %s is shown this once; only its hash is kept.\n", name,
		)
		_, err := fmt.Fprintf(out.Out, "%s\n", text)
		return err
	}
	if err := durablefile.Write(c.Out, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return c.print(out.Out, field{"name", name}, field{"user", user.User}, field{"file", c.Out})
}

func (c *tapCredentialsCommand) revoke(
	ctx context.Context, out Streams, s *operator.Session, users *tapuser.Store,
) error {
	account, err := users.Account(ctx, c.Revoke)
	if err != nil {
		return err
	}
	if err := users.Revoke(ctx, c.Revoke); err != nil {
		return err
	}
	cut, err := identity.KickTap(ctx, s.Conns, account, tapuser.UserOf(c.Revoke))
	if err != nil {
		return fmt.Errorf("revoked, but connections may still be there: %w", err)
	}
	if err := users.Release(ctx, c.Revoke); err != nil {
		return fmt.Errorf(
			"revoked, but the broker's account of these credentials is not free yet: %w", err,
		)
	}
	return c.print(
		out.Out, field{"name", c.Revoke}, field{"user", tapuser.UserOf(c.Revoke)},
		field{"connections_cut", fmt.Sprint(cut)},
	)
}

func (c *tapCredentialsCommand) list(ctx context.Context, out Streams, users *tapuser.Store) error {
	all, err := users.List(ctx)
	if err != nil {
		return err
	}
	for _, user := range all {
		err := c.print(
			out.Out,
			field{"name", user.Name},
			field{"user", user.User},
			field{
				"created_at",
				user.CreatedAt.Format(time.RFC3339),
			},
			field{"renewed_at", user.RenewedAt.Format(time.RFC3339)},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// madeUpName is a name that nobody has.
func madeUpName() string {
	var entropy [5]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return strings.ToLower(
		base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(entropy[:]),
	)
}
