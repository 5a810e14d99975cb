package projections

import (
	"strconv"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// activityRow is one thing that somebody did in an organization.
type activityRow struct {
	org, subject, detail string
	hub                  *string
	sequence             uint64
	at                   time.Time
	kind                 string
	actor                domain.Actor
}

// note writes down what an event says to the people of its organization; those of the inventory and
// of accounts say nothing to them. No secret and no hash of one is in it.
func (c *changes) note(r directory.Recorded) {
	if r.Fact == nil {
		return
	}
	row := activityRow{sequence: r.Seq, at: r.Event.At, kind: r.Event.Type, actor: r.Event.Actor}
	switch f := r.Fact.(type) {
	case domain.OrgCreated:
		row.org, row.subject, row.detail = f.OrgID, f.OrgID, f.Name
	case domain.MemberAdded:
		row.org, row.subject, row.detail = f.OrgID, f.MemberID, string(f.Role)
	case domain.MemberRoleChanged:
		row.org, row.subject, row.detail = f.OrgID, f.MemberID, string(f.Role)
	case domain.MemberRemoved:
		row.org, row.subject = f.OrgID, f.MemberID
	case domain.MemberInvited:
		row.org, row.subject, row.detail = f.OrgID, f.Email, string(f.Role)
	case domain.MemberInvitationRevoked:
		row.org, row.subject = f.OrgID, f.InvitationID
	case domain.SiteCreated:
		row.org, row.subject = f.OrgID, f.SiteID
	case domain.SiteRenamed:
		row.org, row.subject, row.detail = f.OrgID, f.SiteID, f.Name
	case domain.HubCertificateRevoked:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.HubAdded:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.HubMoved:
		row.org, row.subject, row.detail = f.OrgID, string(f.HubID), f.SiteID
	case domain.HubRenamed:
		row.org, row.subject, row.detail = f.OrgID, string(f.HubID), setText(f.Name)
	case domain.HubLogBegun:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.HubSecretRotated:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.HubBlocked:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.HubUnblocked:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.HubReleased:
		row.org, row.subject = f.OrgID, string(f.HubID)
	case domain.DeviceLabeled:
		row.org, row.subject, row.hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), hubOf(f.HubID)
		row.detail = strings.Trim(setText(f.Name)+", "+setText(f.Room), ", ")
	case domain.DeviceForgotten:
		row.org, row.subject, row.hub = f.OrgID, strconv.FormatInt(f.DeviceID, 10), hubOf(f.HubID)
	case domain.KeyCreated:
		row.org, row.subject, row.detail = f.OrgID, f.KeyID, joinScopes(f.Scopes)
	case domain.KeyRevoked:
		row.org, row.subject = f.OrgID, f.KeyID
	default:
		return
	}
	if row.org != "" { // a hub of the inventory may be nobody's
		c.acts = append(c.acts, row)
	}
}

func setText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func hubOf(id domain.HubID) *string {
	text := string(id)
	return &text
}

// expireActivity deletes the rows that are too old.
func expireActivity() statement {
	return statement{
		what: "delete old activity",
		sql:  deleteActivity,
		rows: anyRows,
		args: []any{int(domain.ActivityRetention.Hours())},
	}
}

func (c *changes) activityStatement() statement {
	return statement{what: "insert activity", sql: insertActivity, rows: len(c.acts), args: []any{
		column(c.acts, func(a activityRow) string { return a.org }),
		column(c.acts, func(a activityRow) int64 { return int64(a.sequence) }),
		column(c.acts, func(a activityRow) time.Time { return a.at }),
		column(c.acts, func(a activityRow) string { return a.kind }),
		column(c.acts, func(a activityRow) string { return a.actor.Kind }),
		column(c.acts, func(a activityRow) string { return a.actor.ID }),
		column(c.acts, func(a activityRow) string { return a.subject }),
		column(c.acts, func(a activityRow) *string { return a.hub }),
		column(c.acts, func(a activityRow) string { return a.detail }),
	}}
}
