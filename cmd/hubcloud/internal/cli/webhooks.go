package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"hubcloud/httpapi/client"
)

// webhooksCommand manages the addresses that the service posts events to.
type webhooksCommand struct {
	List       webhooksListCommand       `cmd:"" help:"List the webhooks."`
	Create     webhooksCreateCommand     `cmd:"" help:"Create a webhook, and print its secret."`
	Test       webhooksTestCommand       `cmd:"" help:"Post a test event to a webhook."`
	Deliveries webhooksDeliveriesCommand `cmd:"" help:"List the last requests to a webhook."`
	Enable     webhooksEnableCommand     `cmd:"" help:"Enable a webhook: it goes on from its position."`
	Disable    webhooksDisableCommand    `cmd:"" help:"Disable a webhook."`
	Replay     webhooksReplayCommand     `cmd:"" help:"Post the events after a position, or since a time, again."`
	Rotate     webhooksRotateCommand     `cmd:"" help:"Replace the secret of a webhook, and print the new one."`
	Delete     webhooksDeleteCommand     `cmd:"" help:"Delete a webhook."`
}

// webhookFlags are the key and the webhook of a command.
type webhookFlags struct {
	apiFlags
	Webhook string `arg:"" help:"Id of the webhook."`
}

// change runs a request that changes a webhook, and prints what has become of it, and its secret if
// there is one to show.
func (c *apiFlags) change(
	ctx context.Context, out Output, done string,
	request func(api *client.Client) (client.Webhook, error),
) error {
	return c.withClient(ctx, func(api *client.Client) error {
		w, err := request(api)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Webhook %s %s.\n", w.ID, done)
		if w.Secret != "" {
			text += fmt.Sprintf("Secret (shown only now): %s\n", w.Secret)
		}
		return c.show(out.Out, w, "%s", text)
	})
}

type webhooksListCommand struct{ apiFlags }

// Run lists the webhooks.
func (c *webhooksListCommand) Run(ctx context.Context, out Output) error {
	header := []string{"ID", "NAME", "STATUS", "URL"}
	return listAll(ctx, out, &c.apiFlags, (*client.Client).Webhooks, header, func(w client.Webhook) []string {
		status := w.Status
		if w.DisabledBy != nil {
			status += " (" + *w.DisabledBy + ")"
		}
		return []string{w.ID, w.Name, status, w.URL}
	})
}

type webhooksCreateCommand struct {
	apiFlags
	URL  string             `arg:"" help:"Address to post the events to."`
	Name string             `help:"What people call the webhook."`
	Type []client.EventType `help:"Only events of this type, or of all that begin with what is before \".*\"; may be repeated." placeholder:"TYPE" env:"-"`
	Hub  []string           `help:"Only events of this hub; may be repeated." placeholder:"HUB" env:"-" complete:"hub"`
	Site []string           `help:"Only events of hubs at this site; may be repeated." placeholder:"SITE" env:"-" complete:"site"`
}

// Run creates a webhook and prints its secret, which is not shown again.
func (c *webhooksCreateCommand) Run(ctx context.Context, out Output) error {
	filter := client.WebhookFilter{Types: c.Type}
	return c.change(ctx, out, "created", func(api *client.Client) (_ client.Webhook, err error) {
		if filter.SiteIDs, err = idsOf(ctx, api, c.Site, siteID); err != nil {
			return client.Webhook{}, err
		}
		if filter.HubIDs, err = idsOf(ctx, api, c.Hub, hubID); err != nil {
			return client.Webhook{}, err
		}
		return api.CreateWebhook(ctx, c.Name, c.URL, filter)
	})
}

type webhooksTestCommand struct{ webhookFlags }

// Run posts a test. It fails if the receiver does not take the test.
func (c *webhooksTestCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		d, err := api.TestWebhook(ctx, c.Webhook)
		if err != nil {
			return err
		}
		if !d.Delivered {
			err = fmt.Errorf("not delivered: %s", answerOf(d))
			if !c.JSON {
				return err
			}
		}
		text := fmt.Sprintf("Delivered: %s in %d ms.\n", answerOf(d), d.DurationMS)
		return errors.Join(c.show(out.Out, d, "%s", text), err)
	})
}

// answerOf returns the answer to a request, or why there is none.
func answerOf(d client.WebhookDelivery) string {
	switch {
	case d.Error != nil:
		return *d.Error
	case d.Status != nil:
		return strconv.Itoa(*d.Status)
	default:
		return "?"
	}
}

type webhooksDeliveriesCommand struct{ webhookFlags }

// Run lists the last requests.
func (c *webhooksDeliveriesCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		all, err := api.WebhookDeliveries(ctx, c.Webhook)
		if err != nil {
			return err
		}
		header := []string{"AT", "EVENTS", "ATTEMPT", "MS", "ANSWER"}
		return list(out.Out, c.outputFlags, each(all), header, func(
			d client.WebhookDelivery,
		) []string {
			return []string{
				shortTime(d.At), strconv.Itoa(d.Events), strconv.Itoa(d.Attempt),
				strconv.FormatInt(d.DurationMS, 10), answerOf(d),
			}
		})
	})
}

type (
	webhooksEnableCommand  struct{ webhookFlags }
	webhooksDisableCommand struct{ webhookFlags }
)

// Run enables the webhook.
func (c *webhooksEnableCommand) Run(ctx context.Context, out Output) error {
	return c.setEnabled(ctx, out, true, "enabled")
}

// Run disables the webhook.
func (c *webhooksDisableCommand) Run(ctx context.Context, out Output) error {
	return c.setEnabled(ctx, out, false, "disabled")
}

func (c *webhookFlags) setEnabled(ctx context.Context, out Output, on bool, done string) error {
	return c.change(ctx, out, done, func(api *client.Client) (client.Webhook, error) {
		return api.UpdateWebhook(ctx, c.Webhook, client.WebhookUpdate{Enabled: &on})
	})
}

type webhooksReplayCommand struct {
	webhookFlags
	After string    `help:"Position of the feed, such as the position of a request." placeholder:"POSITION" env:"-" xor:"from" required:""`
	Since time.Time `help:"Time, such as 2026-01-02T03:04:05Z." placeholder:"TIME" env:"-" xor:"from" required:"" format:"2006-01-02T15:04:05Z07:00"`
}

// Run moves the webhook.
func (c *webhooksReplayCommand) Run(ctx context.Context, out Output) error {
	return c.change(ctx, out, "moved", func(api *client.Client) (client.Webhook, error) {
		if c.After != "" {
			return api.ReplayWebhook(ctx, c.Webhook, c.After)
		}
		return api.ReplayWebhookSince(ctx, c.Webhook, c.Since)
	})
}

type webhooksRotateCommand struct {
	webhookFlags
	Overlap time.Duration `help:"For how long the former secret is still used, at most 168h." default:"24h" env:"-"`
}

// Run replaces the secret.
func (c *webhooksRotateCommand) Run(ctx context.Context, out Output) error {
	return c.change(ctx, out, "got a secret", func(api *client.Client) (client.Webhook, error) {
		return api.RotateWebhookSecret(ctx, c.Webhook, c.Overlap)
	})
}

type webhooksDeleteCommand struct{ webhookFlags }

// Run deletes the webhook.
func (c *webhooksDeleteCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		if err := api.DeleteWebhook(ctx, c.Webhook); err != nil {
			return err
		}
		return c.print(out.Out, field{"deleted", c.Webhook})
	})
}
