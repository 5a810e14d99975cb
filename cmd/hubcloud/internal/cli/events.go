package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/client"
)

// eventsCommand prints the events of a hub, or of all hubs.
type eventsCommand struct {
	apiFlags
	HubID  string `arg:"" optional:"" name:"hub" help:"Id or name of the hub." complete:"hub"`
	All    bool   `help:"Print the events of all hubs of the organization: its feed." env:"-"`
	Follow bool   `help:"Continue with new events until Ctrl-C, also after lost connections and restarts of the service." short:"f"`
	After  string `help:"Begin after this cursor, with --all after this position of the feed. Defaults to the oldest event." xor:"begin" placeholder:"CURSOR"`
	Since  string `help:"Begin with the events since this time, such as 2026-01-02T03:04:05Z, or so long ago, such as 15m." xor:"begin" placeholder:"TIME"`
	Last   int    `help:"Begin with the newest N events, at most 500; with --follow, go on with new ones." xor:"begin" placeholder:"N"`
	New    bool   `help:"Begin with the next new event. Needs --follow." xor:"begin"`
	Reader string `help:"Name of this reader, 1 to 64 characters: \"hubcloud readers\" and the portal then show how far it has read." placeholder:"NAME"`
	feedFlags
}

// Validate checks the flags. The flag parser calls it.
func (c *eventsCommand) Validate() error {
	switch {
	case c.All && c.HubID != "":
		return errors.New("--all and a hub: give only one of them")
	case !c.All && c.HubID == "":
		return errors.New("name a hub, or give --all")
	case !c.All && c.feedFlags.given():
		return errors.New("--site, --hub, --type and --part need --all")
	}
	if err := c.feedFlags.Validate(); err != nil {
		return err
	}
	if c.New && !c.Follow {
		return errors.New("--new needs --follow: there are no new events to print otherwise")
	}
	if _, err := timeOf("--since", c.Since, time.Now()); err != nil {
		return err
	}
	if c.Last < 0 || c.Last > 500 {
		return errors.New("--last: must be from 1 to 500")
	}
	if err := checkReader(c.Reader); err != nil {
		return err
	}
	return c.apiFlags.Validate()
}

// Run prints the events. With --follow, an interrupt ends it without an error.
func (c *eventsCommand) Run(ctx context.Context, out Output) error {
	logger := slog.New(slog.DiscardHandler)
	if c.Follow {
		logger = textLogger(out, slog.LevelWarn)
	}
	return c.withLogger(ctx, logger, func(api *client.Client) error {
		events, err := c.events(ctx, api)
		if err != nil {
			return err
		}
		for event, err := range events {
			switch {
			case client.IsGap(err):
				fmt.Fprintln(out.Err, "hubcloud: gap:", err)
			case errors.Is(err, client.ErrResync):
				return fmt.Errorf("%w; leave out --after to begin with the oldest event", err)
			case err != nil && c.Follow:
				return ended(ctx, err)
			case err != nil:
				return err
			}
			if err := c.show(out, event); err != nil {
				return err
			}
		}
		return nil
	})
}

// events returns the events of the hub, each with its cursor as position, or of the feed.
func (c *eventsCommand) events(
	ctx context.Context, api *client.Client,
) (iter.Seq2[client.FeedEvent, error], error) {
	if c.All {
		filter, err := c.filter(ctx, api)
		return api.Feed(ctx, filter, c.After, c.options()...), err
	}
	hub, err := hubID(ctx, api, c.HubID)
	return func(yield func(client.FeedEvent, error) bool) {
		for event, err := range api.Events(ctx, hub, c.After, c.options()...) {
			if !yield(client.FeedEvent{Event: event}, err) {
				return
			}
		}
	}, err
}

// timeOf returns the time that the value of a flag stands for; zero for none.
func timeOf(flag, value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(value); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return at, fmt.Errorf(
			"%s %q: must be a time such as 2026-01-02T03:04:05Z, or a duration such as 15m",
			flag, value,
		)
	}
	return at, nil
}

func (c *eventsCommand) options() []client.EventsOption {
	since, _ := timeOf("--since", c.Since, time.Now()) // Validate has checked it
	options := []client.EventsOption{
		client.AsReader(c.Reader), client.Since(since), client.Last(c.Last),
	}
	switch {
	case !c.Follow:
		options = append(options, client.UntilNewest(), client.GiveUpAfter(max(1, c.Retry)))
	case c.New:
		options = append(options, client.FromNow())
	}
	return options
}

func (c *eventsCommand) show(out Output, event client.FeedEvent) error {
	if c.JSON {
		return printJSON(out.Out, event)
	}
	hub, position := "", event.Cursor
	if c.All {
		hub, position = domain.PlainLine(event.HubID)+"  ", event.Position
	}
	device := "-"
	if event.DeviceID != nil {
		device = strconv.FormatInt(*event.DeviceID, 10)
	}
	at := event.Time.UTC().Format("2006-01-02 15:04:05.000Z")
	_, err := fmt.Fprintf(
		out.Out, "%s  %s%-18s  device %-3s  %s  %s\n", at, hub, domain.PlainLine(string(event.Type)),
		device, domain.PlainLine(string(event.Data)), position,
	)
	return err
}
