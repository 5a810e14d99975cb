package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/domain"
)

type inventoryListCommand struct {
	operatorFlags
	outputFlags
}

// inventoryLine is a hub as --json prints it.
type inventoryLine struct {
	Serial string `json:"serial"`
	HubID  string `json:"hub_id"`
	Status string `json:"status"`
	// OrgID and SiteID are where the hub is, AddedAt since when; null for a hub that no
	// organization has.
	OrgID   *string `json:"org_id"`
	SiteID  *string `json:"site_id"`
	AddedAt *string `json:"added_at"`
	// EnrolledAt is when the hub was last issued a certificate, CertificateExpiresAt when its
	// current one ends.
	EnrolledAt           *string `json:"enrolled_at"`
	CertificateExpiresAt *string `json:"certificate_expires_at"`
}

func inventoryLineOf(hub domain.HubState, now time.Time) inventoryLine {
	line := inventoryLine{
		Serial: hub.ID.Serial(), HubID: string(hub.ID), Status: string(hub.EnrolmentStatus(now)),
		EnrolledAt:           optionalTime(hub.EnrolledAt),
		CertificateExpiresAt: optionalTime(hub.CertificateExpires),
		AddedAt:              optionalTime(hub.RegisteredAt),
	}
	if hub.OrgID != "" {
		line.OrgID, line.SiteID = &hub.OrgID, &hub.SiteID
	}
	return line
}

func optionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := domain.FormatTime(t)
	return &text
}

// Run prints the hubs in the order of their registration, without secrets.
func (c *inventoryListCommand) Run(ctx context.Context, out Streams) error {
	s, err := operator.Connect(ctx, c.service())
	if err != nil {
		return err
	}
	defer s.Close()
	now := time.Now()
	if c.JSON {
		return s.Log.Inventory(
			ctx,
			func(hub domain.HubState) error { return printObject(out.Out, inventoryLineOf(hub, now)) },
		)
	}
	table := tabwriter.NewWriter(out.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SERIAL\tSTATUS\tORGANIZATION\tLAST ENROLMENT\tCERTIFICATE UNTIL")
	err = s.Log.Inventory(ctx, func(hub domain.HubState) error {
		line := inventoryLineOf(hub, now)
		_, err := fmt.Fprintf(
			table, "%s\t%s\t%s\t%s\t%s\n", line.Serial, line.Status, orDash(line.OrgID),
			orDash(line.EnrolledAt), orDash(line.CertificateExpiresAt),
		)
		return err
	})
	if err != nil {
		return err
	}
	return table.Flush()
}

// orDash returns the text, and a dash for none.
func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}
