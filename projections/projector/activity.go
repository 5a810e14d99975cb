package projector

import (
	_ "embed"
	"strconv"
	"strings"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

//go:embed sql/delete_activity.sql
var deleteActivity string

// recordActivity adds the row of an event that concerns an organization. Events of the inventory
// and of accounts concern none. The row has no secret and no hash of one.
func (c *Changes) recordActivity(r directory.Recorded) {
	if r.Fact == nil {
		return
	}
	row := schema.ActivityRow{Sequence: r.Seq, At: r.Event.At, Type: r.Event.Type, Actor: r.Event.Actor}
	switch f := r.Fact.(type) {
	case domain.OrgCreated:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.OrgID, f.Name
	case domain.OrgRenamed:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.OrgID, f.Name
	case domain.ConditionSeen:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, string(f.HubID), f.Condition
	case domain.MemberNamed:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.MemberID, f.Name
	case domain.MailPreferencesSet:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.MemberID, joinSeverities(f.Severities)
	case domain.MemberAdded:
		row.OrgID, row.SubjectID = f.OrgID, f.MemberID
		row.Detail = string(domain.AccessOf(f.Role, f.ViewOnly))
	case domain.MemberRoleChanged:
		row.OrgID, row.SubjectID = f.OrgID, f.MemberID
		row.Detail = string(domain.AccessOf(f.Role, f.ViewOnly))
	case domain.MemberRemoved:
		row.OrgID, row.SubjectID = f.OrgID, f.MemberID
	case domain.MemberInvited:
		row.OrgID, row.SubjectID = f.OrgID, f.Email
		row.Detail = string(domain.AccessOf(f.Role, f.ViewOnly))
	case domain.MemberInvitationRevoked:
		row.OrgID, row.SubjectID = f.OrgID, f.InvitationID
	case domain.SiteCreated:
		row.OrgID, row.SubjectID = f.OrgID, f.SiteID
	case domain.SiteRenamed:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.SiteID, f.Name
	case domain.HubCertificateRevoked:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.HubAdded:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.HubMoved:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, string(f.HubID), f.SiteID
	case domain.HubRenamed:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, string(f.HubID), textOf(f.Name)
	case domain.HubLogBegun:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.HubSecretRotated:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.HubBlocked:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.HubUnblocked:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.HubReleased:
		row.OrgID, row.SubjectID = f.OrgID, string(f.HubID)
	case domain.DeviceLabeled:
		row.OrgID, row.SubjectID, row.HubID = f.OrgID, strconv.FormatInt(f.DeviceID, 10), hubOf(f.HubID)
		row.Detail = strings.Trim(textOf(f.Name)+", "+textOf(f.Room), ", ")
	case domain.DeviceForgotten:
		row.OrgID, row.SubjectID, row.HubID = f.OrgID, strconv.FormatInt(f.DeviceID, 10), hubOf(f.HubID)
	case domain.KeyCreated:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.KeyID, joinScopes(f.Scopes)
	case domain.KeyRevoked:
		row.OrgID, row.SubjectID = f.OrgID, f.KeyID
	case domain.WebhookCreated:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.WebhookID, f.URL
	case domain.WebhookChanged:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.WebhookID, f.URL
	case domain.WebhookSecretRotated:
		row.OrgID, row.SubjectID = f.OrgID, f.WebhookID
	case domain.WebhookEnabled:
		row.OrgID, row.SubjectID = f.OrgID, f.WebhookID
	case domain.WebhookDisabled:
		row.OrgID, row.SubjectID, row.Detail = f.OrgID, f.WebhookID, string(f.Reason)
	case domain.WebhookReplayed:
		row.OrgID, row.SubjectID = f.OrgID, f.WebhookID
	case domain.WebhookDeleted:
		row.OrgID, row.SubjectID = f.OrgID, f.WebhookID
	default:
		return
	}
	if row.OrgID != "" { // a hub of the inventory may have no organization
		c.Activity = append(c.Activity, row)
	}
}

// textOf returns the empty text for nil.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func hubOf(id domain.HubID) *string {
	text := string(id)
	return &text
}

func joinScopes(scopes []domain.Scope) string {
	return strings.Join(values(scopes, func(s domain.Scope) string { return string(s) }), " ")
}

// joinSeverities returns the severities that a member gets mails about, for display.
func joinSeverities(severities []domain.Severity) string {
	if len(severities) == 0 {
		return "none"
	}
	return strings.Join(values(severities, func(s domain.Severity) string { return string(s) }), " ")
}

// ExpireActivity returns the statement that deletes rows older than domain.ActivityRetention.
func ExpireActivity() schema.Statement {
	return schema.Statement{
		What: "delete old activity", SQL: deleteActivity, Rows: schema.AnyRows,
		Args: func() []any { return []any{int(domain.ActivityRetention.Hours())} },
	}
}
