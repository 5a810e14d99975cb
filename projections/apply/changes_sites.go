package apply

import (
	_ "embed"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/tables"
	"hubcloud/streams/directory"
)

//go:embed sql/rename_sites.sql
var renameSites string

// siteChanges are the changes of tables.Sites.
type siteChanges struct {
	created rows[string, tables.Site]
	renamed rows[string, siteName]
}

type siteName struct{ id, orgID, name string }

func (c *siteChanges) create(r directory.Recorded, f domain.SiteCreated) error {
	if c.created.has(f.SiteID) {
		return fmt.Errorf("%w: site %s is created twice", errBadEvent, f.SiteID)
	}
	c.created.put(f.SiteID, tables.Site{
		ID: f.SiteID, OrgID: f.OrgID, Name: f.Name, Created: r.Event.At, Sequence: r.Seq,
	})
	return nil
}

// rename renames a site of this batch, or a site whose row exists. For an event that names another
// organization than the site's it adds a change of its own, which finds no row and so stops the
// projection.
func (c *siteChanges) rename(f domain.SiteRenamed) {
	if site := c.created.get(f.SiteID); site != nil && site.OrgID == f.OrgID {
		site.Name = f.Name
		return
	}
	if site := c.renamed.get(f.SiteID); site != nil && site.orgID == f.OrgID {
		site.name = f.Name
		return
	}
	c.renamed.put(f.SiteID, siteName{id: f.SiteID, orgID: f.OrgID, name: f.Name})
}

func (c *siteChanges) size() int { return len(c.created.list) + len(c.renamed.list) }

func (c *siteChanges) addTo(all *statements) {
	all.add(tables.Sites.Insert(c.created.list))
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
}
