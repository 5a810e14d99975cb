package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"hubcloud/httpapi/client"
)

// eventsCommand prints the events of a hub.
type eventsCommand struct {
	apiFlags
	Hub    string `arg:"" help:"Id of the hub."`
	Follow bool   `help:"Continue with new events until Ctrl-C, also after lost connections and restarts of the service." short:"f"`
	After  string `help:"Begin after this cursor. Defaults to the oldest event." placeholder:"CURSOR"`
	New    bool   `help:"Begin with the next new event. Needs --follow."`
}

// Help returns the long help text.
func (*eventsCommand) Help() string {
	return `Prints the events of a hub, oldest first. Events are kept for 24 hours by default. The key needs the scope events:read.

Each event has a cursor. With --after and the last cursor that you have seen, the command prints the events that follow, each exactly once.
Where the cloud lacks events of the hub, a line on standard error reports the gap.

  hubcloud events hub-demo-0000-0001
  hubcloud events hub-demo-0000-0001 --follow --new
  hubcloud events hub-demo-0000-0001 --json | tail -1 | jq -r .cursor`
}

// Validate checks the flags. The flag parser calls it.
func (c *eventsCommand) Validate() error {
	if c.New && !c.Follow {
		return errors.New("--new needs --follow: there are no new events to print otherwise")
	}
	if c.New && c.After != "" {
		return errors.New("--new and --after: give only one of them")
	}
	return c.apiFlags.Validate()
}

// Run prints the events. With --follow, an interrupt ends it without an error.
func (c *eventsCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, out, func(api *client.Client) error {
		for event, err := range api.Events(ctx, c.Hub, c.After, c.options()...) {
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

func (c *eventsCommand) options() []client.EventsOption {
	if !c.Follow {
		return []client.EventsOption{client.UntilNewest(), client.GiveUpAfter(max(1, c.Retry))}
	}
	if c.New {
		return []client.EventsOption{client.FromNow()}
	}
	return nil
}

func (c *eventsCommand) show(out Output, event client.Event) error {
	if c.JSON {
		return printJSON(out.Out, event)
	}
	device := "-"
	if event.DeviceID != nil {
		device = strconv.FormatInt(*event.DeviceID, 10)
	}
	at := event.Time.UTC().Format("2006-01-02 15:04:05.000Z")
	_, err := fmt.Fprintf(
		out.Out, "%s  %-18s  device %-3s  %s  %s\n", at, printable(string(event.Type)), device,
		printable(string(event.Data)), event.Cursor,
	)
	return err
}
