package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/client"
)

// auditCommand prints the audit log of the organization.
type auditCommand struct {
	apiFlags
	Follow  bool     `help:"Continue with new records until Ctrl-C." short:"f"`
	CSV     bool     `help:"Print a file for spreadsheets, of at most 10,000 records." name:"csv"`
	After   string   `help:"Begin after this cursor." xor:"begin" placeholder:"CURSOR"`
	Since   string   `help:"Begin with the records since this time, such as 2026-01-02T03:04:05Z, or so long ago, such as 15m." xor:"begin" placeholder:"TIME"`
	Until   string   `help:"Only records before this time, or so long ago." placeholder:"TIME"`
	Last    int      `help:"Begin with the newest N records, at most 500." xor:"begin" placeholder:"N"`
	Type    []string `help:"Only this type, such as key.created, or with this prefix, such as key.*; may be repeated." placeholder:"TYPE"`
	Hub     []string `help:"Only changes of this hub and its devices; may be repeated." placeholder:"HUB" complete:"hub"`
	Actor   string   `help:"Only changes by the member, API key or hub with this id." placeholder:"ID"`
	Subject string   `help:"Only changes of what has this id." placeholder:"ID"`
}

// Validate checks the flags. The flag parser calls it.
func (c *auditCommand) Validate() error {
	_, sinceErr := timeOf("--since", c.Since, time.Now())
	_, untilErr := timeOf("--until", c.Until, time.Now())
	switch {
	case c.Last < 0 || c.Last > 500:
		return errors.New("--last: must be from 1 to 500")
	case c.Follow && (c.Until != "" || c.CSV):
		return errors.New("--follow: cannot be combined with --until and --csv, which end")
	case c.CSV && c.JSON:
		return errors.New("--csv and --json: give only one of them")
	}
	return cmp.Or(sinceErr, untilErr, c.apiFlags.Validate())
}

// Run prints the records. With --follow, an interrupt ends it without an error.
func (c *auditCommand) Run(ctx context.Context, out Output) error {
	since, _ := timeOf("--since", c.Since, time.Now()) // Validate has checked both
	until, _ := timeOf("--until", c.Until, time.Now())
	filter := client.AuditFilter{
		Types: c.Type, ActorID: c.Actor, SubjectID: c.Subject, Until: until,
	}
	query := client.EventQuery{After: c.After, Since: since, Last: c.Last}
	return c.withClient(ctx, func(api *client.Client) (err error) {
		if filter.HubIDs, err = idsOf(ctx, api, c.Hub, hubID); err != nil {
			return err
		}
		switch {
		case c.CSV:
			return api.AuditCSV(ctx, filter, query, out.Out)
		case c.Follow:
			return c.follow(ctx, out, api, filter, since)
		}
		for more := true; more; {
			page, err := api.AuditPage(ctx, filter, query)
			if err != nil {
				return err
			}
			for _, record := range page.Data {
				if err := c.print(out, record); err != nil {
					return err
				}
			}
			more, query = page.HasMore, client.EventQuery{After: page.NextCursor, Limit: 500}
		}
		return nil
	})
}

func (c *auditCommand) follow(
	ctx context.Context, out Output, api *client.Client, filter client.AuditFilter, since time.Time,
) error {
	options := []client.EventsOption{client.Since(since), client.Last(c.Last)}
	for record, err := range api.Audit(ctx, filter, c.After, options...) {
		if err != nil {
			return ended(ctx, err)
		}
		if err := c.print(out, record); err != nil {
			return err
		}
	}
	return nil
}

func (c *auditCommand) print(out Output, r client.AuditRecord) error {
	if c.JSON {
		return printJSON(out.Out, r)
	}
	text := func(texts ...*string) string {
		for _, t := range texts {
			if t != nil {
				return domain.PlainLine(*t)
			}
		}
		return "-"
	}
	_, err := fmt.Fprintf(
		out.Out, "%s  %-24s  %s %s  %s  %s  %s  %s\n",
		r.Time.UTC().Format("2006-01-02 15:04:05.000Z"), domain.PlainLine(r.Type),
		domain.PlainLine(r.Actor.Kind), text(r.Actor.Name, r.Actor.ID),
		text(r.Subject.Name, &r.Subject.ID), text(r.Detail), text(r.Address), r.Cursor,
	)
	return err
}
