package projector

import (
	_ "embed"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

//go:embed sql/rename_sites.sql
var renameSites string

// siteChanges are the changes of schema.Sites.
type siteChanges struct {
	created rows[string, schema.Site]
	renamed rows[string, siteName]
}

type siteName struct{ id, orgID, name string }

func (c *siteChanges) create(r directory.Recorded, f domain.SiteCreated) error {
	if c.created.has(f.SiteID) {
		return fmt.Errorf("%w: site %s is created twice", errBadEvent, f.SiteID)
	}
	c.created.put(f.SiteID, schema.Site{
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
	all.add(schema.Sites.Insert(c.created.list))
	all.add(change(
		"rename sites", renameSites, c.renamed.list,
		column(func(s siteName) string { return s.id }),
		column(func(s siteName) string { return s.orgID }),
		column(func(s siteName) string { return s.name }),
	))
}
