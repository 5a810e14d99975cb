package cli

import (
	"context"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
)

type inventoryListCommand struct {
	operatorCommand
}

// inventoryJSON is a hub with --json.
type inventoryJSON struct {
	Serial string `json:"serial"`
	HubID  string `json:"hub_id"`
	Status string `json:"status"`
	// OrgID, SiteID and AddedAt are null for a hub without an organization.
	OrgID   *string `json:"org_id"`
	SiteID  *string `json:"site_id"`
	AddedAt *string `json:"added_at"`
	// EnrolledAt is the time of the last enrolment. Null means never.
	EnrolledAt           *string `json:"enrolled_at"`
	CertificateExpiresAt *string `json:"certificate_expires_at"`
}

func inventoryJSONOf(hub domain.HubState, now time.Time) inventoryJSON {
	line := inventoryJSON{
		Serial: hub.ID.Serial(), HubID: string(hub.ID), Status: string(hub.EnrolmentStatus(now)),
		AddedAt: optionalTime(hub.AddedAt), EnrolledAt: optionalTime(hub.EnrolledAt),
		CertificateExpiresAt: optionalTime(hub.CertificateExpires),
	}
	if hub.OrgID != "" {
		line.OrgID, line.SiteID = &hub.OrgID, &hub.SiteID
	}
	return line
}

// optionalTime formats a time, nil for the zero time.
func optionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := domain.FormatTime(t)
	return &text
}

// Run prints the hubs, without secrets, in the order of their registration.
func (c *inventoryListCommand) Run(ctx context.Context, out Output) error {
	s, err := installation.Connect(ctx, c.service())
	if err != nil {
		return err
	}
	defer s.Close()
	now := time.Now()
	var hubs []inventoryJSON
	err = s.Log.Inventory(ctx, func(hub domain.HubState) error {
		hubs = append(hubs, inventoryJSONOf(hub, now))
		return nil
	})
	if err != nil {
		return err
	}
	header := []string{"SERIAL", "STATUS", "ORGANIZATION", "LAST ENROLMENT", "CERTIFICATE UNTIL"}
	return list(out.Out, c.outputFlags, each(hubs), header, func(h inventoryJSON) []string {
		return []string{
			h.Serial, h.Status, orEmpty(h.OrgID), orEmpty(h.EnrolledAt),
			orEmpty(h.CertificateExpiresAt),
		}
	})
}
