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

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/tap"
)

// tapCommand reads hub logs for analytics.
type tapCommand struct {
	Run         tapRunCommand         `cmd:"" default:"withargs" help:"Print or publish the events of all hubs, or of some."`
	Credentials tapCredentialsCommand `cmd:"" help:"Make, renew and revoke credentials with which a tap reads, and can do nothing else."`
}

// tapRunCommand is the tap itself.
type tapRunCommand struct {
	operatorFlags

	Hub      []string   `help:"Hub to tap, by its id; may be repeated. Without it, all hubs, also those that are added meanwhile." placeholder:"HUB_ID"`
	Type     []string   `help:"Event type to give, such as channel.observed, or device.* for all that begin so; may be repeated." placeholder:"TYPE"`
	Since    string     `help:"Where to begin: a time that long ago (2h) or an instant (2026-01-02T03:04:05Z). Without it, the oldest event that is kept." placeholder:"WHEN"`
	New      bool       `help:"Begin with the next new event; for --follow."`
	Follow   bool       `help:"Go on with events as they come, until Ctrl-C." short:"f"`
	Commands bool       `help:"Give what the service keeps about commands as well, as tap.command."`
	Format   tap.Format `help:"Form of a line: ndjson, or cloudevents for CloudEvents 1.0." default:"ndjson" enum:"ndjson,cloudevents"`

	Checkpoint      string        `help:"File that keeps how far the tap has got; when it is there, the tap goes on from it, and --since and --new do not count." placeholder:"FILE" type:"path"`
	CheckpointEvery time.Duration `help:"Time between two checkpoints." default:"1s"`

	Publish            string `help:"Publish into a JetStream stream instead of printing: its subject, in which {hub_id}, {type} and {organization_id} are replaced." placeholder:"SUBJECT"`
	PublishURL         string `help:"NATS server with that stream." placeholder:"URL" name:"publish-url"`
	PublishCredentials string `help:"Credentials (.creds) for --publish-url." placeholder:"FILE" type:"path" name:"publish-credentials"`
}

// Help is the longer text of --help.
func (*tapCommand) Help() string {
	return `Gives the events of all hubs, those that are kept (for a day) and with --follow those that come, one line of JSON each: the API's event with
organization_id, sequence and stored_at. Order is that of each hub's log.

With --checkpoint, a tap that was stopped or killed goes on where it was: nothing is missing, and what was given since the last checkpoint is given
again. Lines of the type tap.gap and tap.log_begun say where events are missing or a hub was reset.

  hubcloud tap | jq -r .type | sort | uniq -c
  hubcloud tap --follow --new --type 'channel.*'
  hubcloud tap --follow --checkpoint tap.checkpoint >> events.ndjson
  hubcloud tap --follow --checkpoint tap.checkpoint --format cloudevents --publish 'events.{hub_id}' --publish-url nats://USER:PASSWORD@analytics:4222

On another machine, with a file that "hubcloud tap credentials" made:

  hubcloud tap --nats-url nats://broker:4222 --nats-credentials tap.json --follow

"hubcloud tap run --help" lists the flags; "run" may be left out.`
}

// Validate checks what the flags say together.
func (c *tapRunCommand) Validate() error {
	for _, id := range c.Hub {
		if _, ok := domain.ParseHubID(id); !ok {
			return fmt.Errorf("--hub %q: a hub id is like hub-7k2m-q4xd-93ta", id)
		}
	}
	switch {
	case c.New && !c.Follow:
		return errors.New("--new: without --follow there would be nothing to give")
	case c.New && c.Since != "":
		return errors.New("--new and --since: give one of them")
	case c.CheckpointEvery <= 0:
		return fmt.Errorf("--checkpoint-every %v: must be above 0", c.CheckpointEvery)
	case c.Publish != "" && c.PublishURL == "":
		return errors.New(
			"--publish needs --publish-url: with a tap's credentials nothing can be published",
		)
	case c.Publish == "" && (c.PublishURL != "" || c.PublishCredentials != ""):
		return errors.New("--publish-url and --publish-credentials go with --publish")
	}
	if c.Publish != "" {
		if _, err := tap.ParseSubject(c.Publish); err != nil {
			return fmt.Errorf("--publish: %w", err)
		}
	}
	_, err := c.since(time.Now())
	return err
}

// since reads --since: a time ago, or an instant.
func (c *tapRunCommand) since(now time.Time) (time.Time, error) {
	if c.Since == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(c.Since); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, c.Since)
	if err != nil {
		return at, fmt.Errorf(
			"--since %q: a time ago such as 2h or 30m, or an instant such as 2026-01-02T03:04:05Z",
			c.Since,
		)
	}
	return at, nil
}

// Run taps until everything is given or, with --follow, until it is interrupted. A reader of
// standard output that goes away ends it as well.
func (c *tapRunCommand) Run(ctx context.Context, out Streams) error {
	// Otherwise a write to a closed pipe would end the process at once.
	signal.Ignore(syscall.SIGPIPE)
	log := slog.New(slog.NewTextHandler(out.Err, nil))
	nc, shards, err := c.connect(ctx, log)
	if err != nil {
		return err
	}
	defer nc.Close()
	sink, closeSink, err := c.output(ctx, out, log)
	if err != nil {
		return err
	}
	defer closeSink()
	cfg := tap.Config{
		Conn: nc, Shards: shards, Types: c.Type, Commands: c.Commands, New: c.New,
		Follow: c.Follow, Output: sink,
		Checkpoint: c.Checkpoint, CheckpointEvery: c.CheckpointEvery, Logger: log,
	}
	for _, id := range c.Hub {
		cfg.Hubs = append(cfg.Hubs, domain.HubID(id))
	}
	if cfg.Since, err = c.since(time.Now()); err != nil {
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

// output makes what the tap writes to.
func (c *tapRunCommand) output(
	ctx context.Context, out Streams, log *slog.Logger,
) (tap.Output, func(), error) {
	if c.Publish == "" {
		return tap.NewWriter(out.Out, c.Format), func() {}, nil
	}
	opts := []nats.Option{
		nats.Name("hubcloud tap"),
		nats.MaxReconnects(-1),
		nats.Timeout(5 * time.Second),
		streams.WithLog(log),
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
	publisher := tap.NewPublisher(js, tap.Subject(c.Publish), c.Format, log)
	if err := publisher.Check(ctx); err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf(
			"--publish: %w: make one first, such as with `nats stream add`", err,
		)
	}
	return publisher, nc.Close, nil
}

// tap connects to the broker, with a tap's credentials or with those of the service. It says how
// many shards there are.
func (c *tapRunCommand) connect(
	ctx context.Context, log *slog.Logger,
) (nc *nats.Conn, shards int, err error) {
	url, path := c.NATSURL, c.NATSCredentials
	var opts []nats.Option
	if path == "" { // a tap's credentials have an address in them
		var embedded bool
		if url, path, embedded, err = c.service().Broker(); err != nil {
			return nil, 0, err
		}
		if embedded {
			opts = append(opts, nats.SetCustomDialer(wherever{c.service().Dir()}))
		}
	}
	credentials, err := tap.ReadCredentials(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, usage.Errorf(
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
	if nc, err = tap.Connect(ctx, credentials, log, opts...); err != nil {
		return nil, 0, err
	}
	return nc, credentials.Shards, nil
}

// wherever dials the broker that runs on a data directory, at whatever address it has by now: a
// service that was started anew may have another.
type wherever struct{ dir datadir.Dir }

// Dial makes wherever a nats.CustomDialer. The address is the one that was known first.
func (w wherever) Dial(network, address string) (net.Conn, error) {
	if bound, err := w.dir.Endpoints(); err == nil {
		address = bound.NATS
	}
	return net.DialTimeout(network, address, 5*time.Second)
}
