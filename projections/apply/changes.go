package apply

import (
	_ "embed"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/tables"
	"hubcloud/streams/directory"
)

var (
	//go:embed sql/rename_sites.sql
	renameSites string
	//go:embed sql/revoke_keys.sql
	revokeKeys string
)

// Changes folds the directory's events into changes of the tables: rows that are new, and changes
// of rows that exist, at most one a row. So a batch costs a few statements, however many events it
// has. The zero value is empty.
type Changes struct {
	// Activity are the rows of tables.Activity. A load takes them out and writes them itself.
	Activity []tables.Act

	orgs    []tables.Org
	members memberChanges
	sites   rows[string, tables.Site]
	renamed rows[string, siteName]
	hubs    hubChanges
	labels  labelChanges
	keys    rows[string, tables.Key]
	revoked rows[string, revokedKey]
}

type siteName struct{ id, orgID, name string }

type revokedKey struct {
	id, orgID string
	at        time.Time
}

// Add folds one event. It returns an error for which IsPermanent is true if the event contradicts
// itself or an event folded before.
func (c *Changes) Add(r directory.Recorded) error {
	c.recordActivity(r)
	switch f := r.Fact.(type) {
	case domain.OrgCreated:
		c.orgs = append(c.orgs, tables.Org{ID: f.OrgID, Name: f.Name, Created: r.Event.At})
	case domain.MemberAdded, domain.MemberRoleChanged, domain.MemberRemoved, domain.MemberInvited,
		domain.MemberInvitationRevoked, domain.MemberInvitationAccepted:
		return c.members.add(r)
	case domain.SiteCreated:
		return c.createSite(r, f)
	case domain.SiteRenamed:
		c.renameSite(f)
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
		return c.createKey(r, f)
	case domain.KeyRevoked:
		if !c.revoked.has(f.KeyID) {
			c.revoked.put(f.KeyID, revokedKey{id: f.KeyID, orgID: f.OrgID, at: r.Event.At})
		}
	case domain.HubRegistered, domain.HubCertificateIssued, domain.HubCertificateRevoked,
		domain.HubSecretRotated, domain.HubBlocked, domain.HubUnblocked, domain.AccountCreated:
		// Reads of the inventory, certificates and accounts go to the directory itself: they must
		// never be stale.
	case domain.ProjectionSkipped:
		// Projections read these before they start: see directory.Log.Skips.
	default:
		// Whoever adds a fact to the domain decides here what it means to the tables.
		return fmt.Errorf("%w: no projection for %s", errBadEvent, r.Event.Type)
	}
	return nil
}

func (c *Changes) createSite(r directory.Recorded, f domain.SiteCreated) error {
	if c.sites.has(f.SiteID) {
		return fmt.Errorf("%w: site %s is created twice", errBadEvent, f.SiteID)
	}
	c.sites.put(f.SiteID, tables.Site{
		ID: f.SiteID, OrgID: f.OrgID, Name: f.Name, Created: r.Event.At, Sequence: r.Seq,
	})
	return nil
}

// renameSite renames a site, whether this batch creates it or its row exists. An event that names
// another organization than the site's is kept: its statement finds no row, and stops the
// projection.
func (c *Changes) renameSite(f domain.SiteRenamed) {
	if site := c.sites.get(f.SiteID); site != nil && site.OrgID == f.OrgID {
		site.Name = f.Name
		return
	}
	if site := c.renamed.get(f.SiteID); site != nil && site.orgID == f.OrgID {
		site.name = f.Name
		return
	}
	c.renamed.put(f.SiteID, siteName{id: f.SiteID, orgID: f.OrgID, name: f.Name})
}

func (c *Changes) createKey(r directory.Recorded, f domain.KeyCreated) error {
	if c.keys.has(f.KeyID) || len(f.SecretHash) != 32 {
		return fmt.Errorf(
			"%w: key %s is created twice, or its hash has not 32 bytes", errBadEvent, f.KeyID,
		)
	}
	c.keys.put(f.KeyID, tables.Key{
		ID: f.KeyID, OrgID: f.OrgID, Label: f.Label, Environment: f.Environment,
		Scopes: f.Scopes, SecretHash: f.SecretHash, Created: r.Event.At,
	})
	return nil
}

// Statements returns the changes as statements, in an order in which each finds the rows that it
// needs.
func (c *Changes) Statements() []tables.Statement {
	all := statements{}
	all.add(tables.Orgs.Insert(c.orgs))
	c.members.addTo(&all)
	all.add(tables.Sites.Insert(c.sites.list))
	all.add(tables.Statement{
		What: "rename sites", SQL: renameSites, Rows: len(c.renamed.list),
		Args: func() []any {
			return []any{
				column(c.renamed.list, func(s siteName) string { return s.id }),
				column(c.renamed.list, func(s siteName) string { return s.orgID }),
				column(c.renamed.list, func(s siteName) string { return s.name }),
			}
		},
	})
	c.hubs.addTo(&all)
	c.labels.addTo(&all)
	all.add(tables.Keys.Insert(c.keys.list))
	all.add(tables.Statement{
		What: "revoke keys", SQL: revokeKeys, Rows: len(c.revoked.list),
		Args: func() []any {
			return []any{
				column(c.revoked.list, func(k revokedKey) string { return k.id }),
				column(c.revoked.list, func(k revokedKey) string { return k.orgID }),
				column(c.revoked.list, func(k revokedKey) time.Time { return k.at }),
			}
		},
	})
	if len(c.Activity) > 0 {
		all.add(tables.Activity.Insert(c.Activity))
		all.add(ExpireActivity())
	}
	return all
}

// statements is a list of statements. add leaves out a statement that changes no rows.
type statements []tables.Statement

func (s *statements) add(statement tables.Statement) {
	if statement.Rows != 0 {
		*s = append(*s, statement)
	}
}

// Size returns how many rows the changes make and change, without Activity.
func (c *Changes) Size() int {
	return len(c.orgs) + c.members.size() + len(c.sites.list) + len(c.renamed.list) +
		c.hubs.size() + c.labels.size() + len(c.keys.list) + len(c.revoked.list)
}
