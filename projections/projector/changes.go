package projector

import (
	_ "embed"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

//go:embed sql/rename_orgs.sql
var renameOrgs string

// Changes folds the directory's events into changes of the tables: new rows, and at most one change
// of each existing row. So a batch costs a few statements, however many events it has. The zero
// value is empty.
type Changes struct {
	// Activity are the new rows of schema.Activity. Package rebuild removes them from here and
	// writes them itself.
	Activity []domain.Activity

	orgs        []schema.Org
	renamedOrgs rows[string, domain.OrgRenamed]
	members     memberChanges
	sites       siteChanges
	hubs        hubChanges
	labels      labelChanges
	keys        keyChanges
}

// Add folds one event. If the event contradicts itself or an event that was folded before, Add
// returns an error for which IsPermanent is true.
func (c *Changes) Add(r directory.Recorded) error {
	if activity, ok := domain.ActivityOf(r.Seq, r.Event, r.Fact); ok {
		c.Activity = append(c.Activity, activity)
	}
	switch f := r.Fact.(type) {
	case domain.OrgCreated:
		c.orgs = append(c.orgs, schema.Org{ID: f.OrgID, Name: f.Name, Created: r.Event.At})
	case domain.OrgRenamed:
		if renamed := c.renamedOrgs.get(f.OrgID); renamed != nil {
			renamed.Name = f.Name
			return nil
		}
		c.renamedOrgs.put(f.OrgID, f)
	case domain.ConditionSeen, domain.ConditionUnseen, domain.MemberNamed, domain.MailPreferencesSet,
		domain.BookSet:
		// They are read from the directory itself: nobody may get a mail after unsubscribing.
	case domain.MemberAdded, domain.MemberRoleChanged, domain.MemberRemoved, domain.MemberInvited,
		domain.MemberInvitationRevoked, domain.MemberInvitationRestored,
		domain.MemberInvitationAccepted:
		return c.members.add(r)
	case domain.SiteCreated:
		return c.sites.create(r, f)
	case domain.SiteRenamed:
		c.sites.rename(f)
	case domain.HubAdded, domain.HubMoved, domain.HubRenamed:
		return c.hubs.add(r)
	case domain.HubReleased:
		c.labels.clear(f.HubID)
		return c.hubs.add(r)
	case domain.HubLogBegun:
		c.labels.clear(f.HubID)
		return c.hubs.add(r)
	case domain.HubLogRestored:
		return c.hubs.add(r)
	case domain.DeviceLabeled:
		c.labels.set(f.OrgID, f.HubID, f.DeviceID, domain.DeviceLabel{Name: f.Name, Room: f.Room})
	case domain.DeviceForgotten:
		c.labels.set(f.OrgID, f.HubID, f.DeviceID, domain.DeviceLabel{})
	case domain.KeyCreated:
		return c.keys.create(r, f)
	case domain.KeyChanged:
		c.keys.change(f)
	case domain.KeyRotated:
		return c.keys.rotate(f)
	case domain.KeyRevoked:
		c.keys.revoke(r, f)
	case domain.KeyExpiryMailed: // the directory itself is asked
	case domain.HubRegistered, domain.HubCertificateIssued, domain.HubCertificateRevoked,
		domain.HubSecretRotated, domain.HubBlocked, domain.HubUnblocked, domain.AccountCreated,
		domain.AccountIdentityBound:
		// The inventory, certificates and accounts are read from the directory itself, because
		// those reads must never be stale.
	case domain.WebhookCreated, domain.WebhookChanged, domain.WebhookSecretRotated,
		domain.WebhookEnabled, domain.WebhookDisabled, domain.WebhookReplayed,
		domain.WebhookDeleted: // webhooks are delivered while the database is away
	case domain.CredentialSet, domain.CredentialRevocation, domain.CredentialReported:
		// Codes are read from the directory itself: a revoked one must not look active.
	case domain.EventLost: // nobody knows what it was
	case domain.ProjectionSkipped:
		// A projection reads the skips before it starts: see directory.Log.Skips.
	default:
		// Every fact of the domain needs a case above, even if it changes no table.
		return fmt.Errorf("%w: no projection for %s", errBadEvent, r.Event.Type)
	}
	return nil
}

// Statements returns the changes as statements. They must run in this order: each finds the rows
// that it changes.
func (c *Changes) Statements() []schema.Statement {
	all := statements{}
	all.add(schema.Orgs.Insert(c.orgs))
	all.add(change(
		"rename organizations", renameOrgs, c.renamedOrgs.list,
		column(func(f domain.OrgRenamed) string { return f.OrgID }),
		column(func(f domain.OrgRenamed) string { return f.Name }),
	))
	c.members.addTo(&all)
	c.sites.addTo(&all)
	c.hubs.addTo(&all)
	c.labels.addTo(&all)
	c.keys.addTo(&all)
	if len(c.Activity) > 0 {
		all.add(schema.Activity.Insert(c.Activity))
		all.add(ExpireActivity())
	}
	return all
}

// statements is a list of statements.
type statements []schema.Statement

// add appends a statement, unless it changes no rows.
func (s *statements) add(statement schema.Statement) {
	if statement.Rows != 0 {
		*s = append(*s, statement)
	}
}

// Size returns how many rows the changes insert, change and delete, without Activity.
func (c *Changes) Size() int {
	return len(c.orgs) + len(c.renamedOrgs.list) + c.members.size() + c.sites.size() + c.hubs.size() + c.labels.size() +
		c.keys.size()
}
