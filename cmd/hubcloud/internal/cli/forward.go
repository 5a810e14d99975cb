package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/httpapi/client"
	"hubcloud/httpapi/webhook"
)

// forwardCommand posts the events of all hubs to a local service.
type forwardCommand struct {
	apiFlags
	To         string           `help:"Address to post the events to, such as http://127.0.0.1:9000/events." placeholder:"URL" required:""`
	Checkpoint string           `help:"File for the position in the feed. When it exists, forwarding continues from there." placeholder:"FILE" type:"path"`
	Oldest     bool             `help:"Without a checkpoint, begin with the oldest stored event instead of the next new one."`
	Secret     []webhook.Secret `help:"Secret for signatures, whsec_ and 24 to 64 bytes in base64. Better set HUBCLOUD_WEBHOOK_SECRET: other users of this machine can see flags. May be repeated to change it: each request has a signature for each secret." placeholder:"SECRET" env:"HUBCLOUD_WEBHOOK_SECRET"`
	Batch      bool             `help:"Post up to 100 events of a hub in one request, as {\"data\":[…]}."`
	Skip       []string         `help:"Step over the event with this cursor, and log it; may be repeated. For an event that the receiver can never take." placeholder:"CURSOR" env:"-"`
	Reader     string           `help:"Name of this reader, 1 to 64 characters: \"hubcloud readers\" and the portal show how far it has read." placeholder:"NAME" default:"hubcloud-forward"`
	Timeout    time.Duration    `help:"How long the receiver may take for an answer." default:"30s"`
	feedFlags
}

// Validate checks the flags. The flag parser calls it.
func (c *forwardCommand) Validate() error {
	if err := webhook.CheckURL(c.To); err != nil {
		return fmt.Errorf("--to %w", err)
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be above 0", c.Timeout)
	}
	if err := c.feedFlags.Validate(); err != nil {
		return err
	}
	if err := checkReader(c.Reader); err != nil {
		return err
	}
	return c.apiFlags.Validate()
}

// Run forwards events until it is interrupted.
func (c *forwardCommand) Run(ctx context.Context, out Output) (err error) {
	cfg := webhook.ForwarderConfig{
		Receiver: webhook.Config{
			URL: c.To, Secrets: c.Secret, UserAgent: installation.UserAgent(), Timeout: c.Timeout,
		},
		Batch: c.Batch, Skip: c.Skip,
		Logger: logFlags{LogLevel: slog.LevelInfo.String(), LogFormat: c.format()}.logger(out),
	}
	if c.Checkpoint != "" {
		var from *checkpoint
		if from, err = openCheckpoint(c.Checkpoint, c.Part); err != nil {
			return installation.Usagef("--checkpoint %w", err)
		}
		defer func() { err = errors.Join(err, from.close()) }()
		cfg.Position, cfg.Save = from.position, from.save
	}
	err = c.withLogger(ctx, cfg.Logger, func(api *client.Client) error {
		filter, err := c.filter(ctx, api)
		if err != nil {
			return err
		}
		if cfg.Position == "" && !c.Oldest {
			if cfg.Position, err = api.FeedPosition(ctx); err != nil {
				return err
			}
		}
		cfg.Feed = c.feed(api, filter, cfg.Logger)
		f, err := webhook.NewForwarder(cfg)
		if err != nil {
			return installation.AsUsage(err)
		}
		return f.Run(ctx)
	})
	if errors.Is(err, client.ErrResync) {
		return fmt.Errorf(
			"%w: the service no longer keeps all events after the position; to continue without "+
				"them, move the checkpoint away and begin anew, with --oldest at the oldest event",
			err,
		)
	}
	return err
}

// feed returns the feed of the API's events. Gaps are logged.
func (c *forwardCommand) feed(
	api *client.Client, filter client.FeedFilter, logger *slog.Logger,
) webhook.Feed {
	return func(
		ctx context.Context, after string, onPosition func(string),
	) iter.Seq2[webhook.Event, error] {
		return func(yield func(webhook.Event, error) bool) {
			for event, err := range api.Feed(
				ctx, filter, after, client.OnPosition(onPosition), client.AsReader(c.Reader),
			) {
				if client.IsGap(err) {
					logger.Warn("events missing", "hub_id", event.HubID, "error", err)
					err = nil
				}
				if !yield(webhook.Event{
					HubID: event.HubID, Cursor: event.Cursor, Type: string(event.Type),
					Position: event.Position, Body: event.Raw,
				}, err) {
					return
				}
			}
		}
	}
}

// format returns the format of the log.
func (c *forwardCommand) format() string {
	if c.JSON {
		return "json"
	}
	return "text"
}
