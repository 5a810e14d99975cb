package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/tap"
)

// tapCommand groups the commands that read hub logs for analytics.
type tapCommand struct {
	Run         tapRunCommand         `cmd:"" default:"withargs" help:"Print or publish the events of all hubs, or of some."`
	Credentials tapCredentialsCommand `cmd:"" help:"Create, rotate and revoke read-only credentials for taps."`
}

// tapRunCommand prints or publishes events.
type tapRunCommand struct {
	operatorFlags

	Hub      []string   `help:"Id of a hub; may be repeated. Defaults to all hubs, including those added later." placeholder:"HUB_ID"`
	Type     []string   `help:"Event type, such as channel.observed, or a prefix such as device.*; may be repeated. Defaults to all." placeholder:"TYPE"`
	Since    string     `help:"Begin this long ago (2h) or at this time (2026-01-02T03:04:05Z). Defaults to the oldest event." xor:"begin" placeholder:"WHEN"`
	New      bool       `help:"Begin with the next new event. Needs --follow." xor:"begin"`
	Follow   bool       `help:"Continue with new events until Ctrl-C." short:"f"`
	Commands bool       `help:"Include the records of commands, as tap.command."`
	Format   tap.Format `help:"Format of a line: ndjson, or cloudevents for CloudEvents 1.0." default:"ndjson" enum:"ndjson,cloudevents"`

	Checkpoint      string        `help:"File for the position of the tap. When it exists, the tap continues from there and ignores --since and --new." placeholder:"FILE" type:"path"`
	CheckpointEvery time.Duration `help:"Interval of checkpoints." default:"1s"`

	Publish            string `help:"Publish to a JetStream stream instead of printing: subject, with the placeholders {hub_id}, {type} and {organization_id}." placeholder:"SUBJECT"`
	PublishURL         string `help:"NATS server with that stream." placeholder:"URL" name:"publish-url"`
	PublishCredentials string `help:"Credentials (.creds) for --publish-url." placeholder:"FILE" type:"path" name:"publish-credentials"`
}

// Validate checks the flags. The flag parser calls it.
func (c *tapRunCommand) Validate() error {
	for _, id := range c.Hub {
		if _, ok := domain.ParseHubID(id); !ok {
			return fmt.Errorf("--hub %q: a hub id is like hub-7k2m-q4xd-93ta", id)
		}
	}
	switch {
	case c.New && !c.Follow:
		return errors.New("--new needs --follow: there are no new events to print otherwise")
	case c.CheckpointEvery <= 0:
		return fmt.Errorf("--checkpoint-every %v: must be above 0", c.CheckpointEvery)
	case c.Publish != "" && c.PublishURL == "":
		return errors.New(
			"--publish needs --publish-url: a tap's credentials do not allow publishing",
		)
	case c.Publish == "" && (c.PublishURL != "" || c.PublishCredentials != ""):
		return errors.New("--publish-url and --publish-credentials need --publish")
	}
	if c.Publish != "" {
		if _, err := tap.ParseSubject(c.Publish); err != nil {
			return fmt.Errorf("--publish: %w", err)
		}
	}
	_, err := timeOf("--since", c.Since, time.Now())
	return err
}

// Run prints or publishes the events. With --follow it runs until it is interrupted, or until the
// reader of standard output has gone.
func (c *tapRunCommand) Run(ctx context.Context, out Output) error {
	// By default, a write to a closed standard output kills the process.
	signal.Ignore(syscall.SIGPIPE)
	logger := textLogger(out, slog.LevelInfo)
	nc, shards, err := c.connect(ctx, logger)
	if err != nil {
		return err
	}
	defer nc.Close()
	sink, closeSink, err := c.output(ctx, out, logger)
	if err != nil {
		return err
	}
	defer closeSink()
	cfg := tap.Config{
		Conn: nc, Shards: shards, Types: c.Type, Commands: c.Commands, New: c.New,
		Follow: c.Follow, Output: sink,
		Checkpoint: c.Checkpoint, CheckpointEvery: c.CheckpointEvery, Logger: logger,
	}
	for _, id := range c.Hub {
		cfg.Hubs = append(cfg.Hubs, domain.HubID(id))
	}
	if cfg.Since, err = timeOf("--since", c.Since, time.Now()); err != nil {
		return err
	}
	t, err := tap.New(cfg)
	if err != nil {
		return err
	}
	if err := t.Run(ctx); !errors.Is(err, tap.ErrReaderGone) {
		return err
	}
	return nil
}

// output returns the tap's output and a function that closes it.
func (c *tapRunCommand) output(
	ctx context.Context, out Output, logger *slog.Logger,
) (tap.Output, func(), error) {
	if c.Publish == "" {
		return tap.NewWriter(belowTerminal(out.Out), c.Format), func() {}, nil
	}
	opts := []nats.Option{
		nats.Name("hubcloud tap"),
		nats.MaxReconnects(-1),
		nats.Timeout(5 * time.Second),
		streams.WithLog(logger),
	}
	if c.PublishCredentials != "" {
		opts = append(opts, nats.UserCredentials(c.PublishCredentials))
	}
	nc, err := nats.Connect(c.PublishURL, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("--publish-url: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	publisher := tap.NewPublisher(js, tap.Subject(c.Publish), c.Format, logger)
	if err := publisher.Check(ctx); err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf(
			"--publish: %w: create one first, for example with `nats stream add`", err,
		)
	}
	return publisher, nc.Close, nil
}

// connect connects to the broker with a tap's credentials or the service's, and returns the
// number of shards.
func (c *tapRunCommand) connect(
	ctx context.Context, logger *slog.Logger,
) (nc *nats.Conn, shards int, err error) {
	url, path := c.NATSURL, c.NATSCredentials
	var opts []nats.Option
	if path == "" { // a file of tap credentials has the broker's URL
		var embedded bool
		if url, path, embedded, err = c.service().Broker(); err != nil {
			return nil, 0, err
		}
		if embedded {
			opts = append(opts, nats.SetCustomDialer(endpointsDialer{c.service().Dir()}))
		}
	}
	credentials, err := tap.ReadCredentials(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, installation.Usagef(
			"no credentials at %s: name a file of `hubcloud tap credentials` with "+
				"--nats-credentials, or the service's --data-dir",
			path,
		)
	}
	if err != nil {
		return nil, 0, err
	}
	if url != "" {
		credentials.URL = url
	}
	if nc, err = tap.Connect(ctx, credentials, logger, opts...); err != nil {
		return nil, 0, err
	}
	return nc, credentials.Shards, nil
}

// endpointsDialer dials the broker of the service on a data directory at its current address, which
// may change with a restart.
type endpointsDialer struct{ dir installation.Dir }

// Dial implements nats.CustomDialer. It uses address while endpoints.json does not exist.
func (d endpointsDialer) Dial(network, address string) (net.Conn, error) {
	if bound, err := d.dir.Endpoints(); err == nil {
		address = bound.NATS
	}
	return net.DialTimeout(network, address, 5*time.Second)
}
