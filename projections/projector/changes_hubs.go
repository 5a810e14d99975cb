package projector

import (
	_ "embed"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

var (
	//go:embed sql/delete_hubs.sql
	deleteHubs string
	//go:embed sql/change_hubs.sql
	changeHubs string
)

// hubChanges are the changes of schema.Hubs. The statement that deletes released hubs comes before
// the one that inserts added hubs, because a batch may release a hub and add it again.
type hubChanges struct {
	released rows[domain.HubID, releasedHub]
	added    rows[domain.HubID, schema.Hub]
	changed  rows[domain.HubID, hubChange]
}

type releasedHub struct {
	id    domain.HubID
	orgID string
}

// hubChange has the new values of a hub's columns; nil leaves a column unchanged. A hub can lose
// its name, so renamed reports whether name is the new one.
type hubChange struct {
	id      domain.HubID
	orgID   string
	siteID  *string
	renamed bool
	name    *string
	epoch   *domain.Epoch
}

func (c *hubChanges) add(r directory.Recorded) error {
	switch f := r.Fact.(type) {
	case domain.HubAdded:
		if c.added.has(f.HubID) || c.changed.has(f.HubID) {
			return fmt.Errorf("%w: hub %s is added twice", errBadEvent, f.HubID)
		}
		c.added.put(f.HubID, schema.Hub{
			ID: f.HubID, OrgID: f.OrgID, SiteID: f.SiteID, Name: f.Name, AddedAt: r.Event.At,
			ConnectedWhenAdded: f.Connected, Epoch: f.Epoch(),
		})
	case domain.HubReleased:
		return c.release(f)
	case domain.HubMoved:
		c.change(hubChange{id: f.HubID, orgID: f.OrgID, siteID: &f.SiteID})
	case domain.HubRenamed:
		c.change(hubChange{id: f.HubID, orgID: f.OrgID, renamed: true, name: f.Name})
	case domain.HubLogBegun:
		epoch := f.Epoch()
		c.change(hubChange{id: f.HubID, orgID: f.OrgID, epoch: &epoch})
	case domain.HubLogRestored:
		epoch := f.Epoch()
		c.change(hubChange{id: f.HubID, orgID: f.OrgID, epoch: &epoch})
	}
	return nil
}

// release removes a hub of this batch or a hub whose row exists.
func (c *hubChanges) release(f domain.HubReleased) error {
	if row := c.added.get(f.HubID); row != nil {
		if row.OrgID != f.OrgID {
			return fmt.Errorf(
				"%w: hub %s is released by %s and belongs to %s", errBadEvent, f.HubID, f.OrgID,
				row.OrgID,
			)
		}
		c.added.remove(f.HubID)
		return nil
	}
	if c.released.has(f.HubID) {
		return fmt.Errorf("%w: hub %s is released twice", errBadEvent, f.HubID)
	}
	c.changed.remove(f.HubID)
	c.released.put(f.HubID, releasedHub{id: f.HubID, orgID: f.OrgID})
	return nil
}

// change changes a hub of this batch or a hub whose row exists.
func (c *hubChanges) change(change hubChange) {
	if row := c.added.get(change.id); row != nil && row.OrgID == change.orgID {
		change.applyTo(row)
		return
	}
	if known := c.changed.get(change.id); known != nil && known.orgID == change.orgID {
		known.merge(change)
		return
	}
	c.changed.put(change.id, change)
}

func (h *hubChange) applyTo(row *schema.Hub) {
	if h.siteID != nil {
		row.SiteID = *h.siteID
	}
	if h.renamed {
		row.Name = h.name
	}
	if h.epoch != nil {
		row.Epoch = *h.epoch
	}
}

// merge adds a later change of the same hub.
func (h *hubChange) merge(later hubChange) {
	if later.siteID != nil {
		h.siteID = later.siteID
	}
	if later.renamed {
		h.renamed, h.name = true, later.name
	}
	if later.epoch != nil {
		h.epoch = later.epoch
	}
}

func (c *hubChanges) size() int {
	return len(c.released.list) + len(c.added.list) + len(c.changed.list)
}

func (c *hubChanges) addTo(all *statements) {
	all.add(change(
		"delete released hubs", deleteHubs, c.released.list,
		column(func(h releasedHub) string { return string(h.id) }),
		column(func(h releasedHub) string { return h.orgID }),
	))
	all.add(schema.Hubs.Insert(c.added.list))
	all.add(change(
		"change hubs", changeHubs, c.changed.list,
		column(func(h hubChange) string { return string(h.id) }),
		column(func(h hubChange) string { return h.orgID }),
		column(func(h hubChange) *string { return h.siteID }),
		column(func(h hubChange) bool { return h.renamed }),
		column(func(h hubChange) *string { return h.name }),
		epochColumn(func(e domain.Epoch) string { return e.ID.String() }),
		epochColumn(func(e domain.Epoch) int64 { return int64(e.After) }),
		epochColumn(func(e domain.Epoch) string { return e.Former.String() }),
	))
}

// epochColumn returns a column of the changed epochs; nil where the epoch does not change.
func epochColumn[C any](of func(domain.Epoch) C) func([]hubChange) any {
	return column(func(h hubChange) *C {
		if h.epoch == nil {
			return nil
		}
		value := of(*h.epoch)
		return &value
	})
}
