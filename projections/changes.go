package projections

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// changes folds a batch of the directory's events into what is to be done to each table: rows that
// are new, and changes of rows that are there already, one a row. So a batch costs a few
// statements, however many events it has.
type changes struct {
	orgs    []orgRow
	members memberChanges
	sites   rows[string, siteRow]
	renamed rows[string, siteRow]
	hubs    rows[domain.HubID, hubRow]
	changed rows[domain.HubID, hubChange]
	// released are hubs of organizations whose rows go before hubs are inserted.
	released rows[domain.HubID, releasedHub]
	labels   labelChanges
	keys     rows[string, keyRow]
	revoked  rows[string, keyRow]
	acts     []activityRow
}

type orgRow struct {
	id, name string
	created  time.Time
}

type siteRow struct {
	id, org, name string
	created       time.Time
	sequence      uint64
}

type hubRow struct {
	id         domain.HubID
	org, site  string
	name       *string
	registered time.Time
	connected  bool
	epoch      domain.Epoch
}

type releasedHub struct {
	id  domain.HubID
	org string
}

// hubChange is what changes of a hub; nil is what stays.
type hubChange struct {
	id      domain.HubID
	org     string
	site    *string
	renamed bool
	name    *string
	epoch   *domain.Epoch
}

type keyRow struct {
	id, org, label, environment string
	scopes                      []domain.Scope
	hash                        []byte
	at                          time.Time
}

// rows are rows by their key, in the order in which they came.
type rows[K comparable, R any] struct {
	list  []R
	index map[K]int
}

// of gives the row of a key; nil when there is none. It is good until the next put.
func (r *rows[K, R]) of(key K) *R {
	if i, ok := r.index[key]; ok {
		return &r.list[i]
	}
	return nil
}

func (r *rows[K, R]) put(key K, row R) *R {
	if r.index == nil {
		r.index = map[K]int{}
	}
	r.index[key] = len(r.list)
	r.list = append(r.list, row)
	return &r.list[len(r.list)-1]
}

// remove takes the row of a key away, if there is one.
func (r *rows[K, R]) remove(key K) {
	i, ok := r.index[key]
	if !ok {
		return
	}
	r.list = slices.Delete(r.list, i, i+1)
	delete(r.index, key)
	for other, j := range r.index {
		if j > i {
			r.index[other] = j - 1
		}
	}
}

// add folds one event. An event that contradicts itself or what the batch has made is an error.
func (c *changes) add(r directory.Recorded) error {
	c.note(r)
	switch f := r.Fact.(type) {
	case domain.OrgCreated:
		c.orgs = append(c.orgs, orgRow{id: f.OrgID, name: f.Name, created: r.Event.At})
	case domain.MemberAdded:
		c.members.join(r, f)
	case domain.MemberRoleChanged:
		return c.members.changeRole(f)
	case domain.MemberRemoved:
		return c.members.remove(f)
	case domain.MemberInvited:
		return c.members.invite(r, f)
	case domain.MemberInvitationRevoked:
		return c.members.settle(f.OrgID, f.InvitationID, domain.InvitationRevoked)
	case domain.MemberInvitationAccepted:
		return c.members.settle(f.OrgID, f.InvitationID, domain.InvitationAccepted)
	case domain.SiteCreated:
		if c.sites.of(f.SiteID) != nil {
			return fmt.Errorf("%w: site %s is created twice", errBadEvent, f.SiteID)
		}
		c.sites.put(f.SiteID, siteRow{
			id: f.SiteID, org: f.OrgID, name: f.Name, created: r.Event.At, sequence: r.Seq,
		})
	case domain.SiteRenamed:
		c.renameSite(f)
	case domain.HubAdded:
		if c.hubs.of(f.HubID) != nil || c.changed.of(f.HubID) != nil {
			return fmt.Errorf("%w: hub %s is added twice", errBadEvent, f.HubID)
		}
		c.hubs.put(f.HubID, hubRow{
			id: f.HubID, org: f.OrgID, site: f.SiteID, name: f.Name,
			registered: r.Event.At, connected: f.Connected, epoch: f.Epoch(),
		})
	case domain.HubReleased:
		return c.release(f)
	case domain.HubMoved:
		c.hub(f.HubID, f.OrgID, func(h *hubRow) { h.site = f.SiteID }, func(h *hubChange) { h.site = &f.SiteID })
	case domain.HubRenamed:
		c.hub(f.HubID, f.OrgID, func(h *hubRow) { h.name = f.Name }, func(h *hubChange) { h.renamed, h.name = true, f.Name })
	case domain.HubLogBegun:
		c.hubLog(f.HubID, f.OrgID, f.Epoch())
		c.labels.clear(f.HubID)
	case domain.HubLogRestored:
		c.hubLog(f.HubID, f.OrgID, f.Epoch())
	case domain.DeviceLabeled:
		c.labels.set(f.OrgID, f.HubID, f.DeviceID, domain.DeviceLabel{Name: f.Name, Room: f.Room})
	case domain.DeviceForgotten:
		c.labels.set(f.OrgID, f.HubID, f.DeviceID, domain.DeviceLabel{})
	case domain.HubRegistered, domain.HubCertificateIssued, domain.HubCertificateRevoked, domain.HubSecretRotated, domain.HubBlocked,
		domain.HubUnblocked, domain.AccountCreated:
		// Inventory, certificates and accounts are asked of the directory itself: nothing here may
		// be stale.
	case domain.ProjectionSkipped:
		// Read before anything is projected: see directory.Log.Skips.
	case domain.KeyCreated:
		if c.keys.of(f.KeyID) != nil || len(f.SecretHash) != 32 {
			return fmt.Errorf("%w: key %s is created twice, or its hash has not 32 bytes", errBadEvent, f.KeyID)
		}
		c.keys.put(f.KeyID, keyRow{
			id: f.KeyID, org: f.OrgID, label: f.Label, environment: f.Environment,
			scopes: f.Scopes, hash: f.SecretHash, at: r.Event.At,
		})
	case domain.KeyRevoked:
		if c.revoked.of(f.KeyID) == nil {
			c.revoked.put(f.KeyID, keyRow{id: f.KeyID, org: f.OrgID, at: r.Event.At})
		}
	default:
		// A fact that the domain has gained and that nothing here was written for: whoever adds one
		// decides here what it means.
		return fmt.Errorf("%w: no projection for %s", errBadEvent, r.Event.Type)
	}
	return nil
}

func (c *changes) renameSite(f domain.SiteRenamed) {
	if site := c.sites.of(f.SiteID); site != nil && site.org == f.OrgID {
		site.name = f.Name
		return
	}
	if site := c.renamed.of(f.SiteID); site != nil && site.org == f.OrgID {
		site.name = f.Name
		return
	}
	c.renamed.put(f.SiteID, siteRow{id: f.SiteID, org: f.OrgID, name: f.Name})
}

// release takes a hub's row away, whether it is made by this batch or is there.
func (c *changes) release(f domain.HubReleased) error {
	c.labels.clear(f.HubID)
	if row := c.hubs.of(f.HubID); row != nil {
		if row.org != f.OrgID {
			return fmt.Errorf(
				"%w: hub %s is released by %s and belongs to %s", errBadEvent, f.HubID, f.OrgID,
				row.org,
			)
		}
		c.hubs.remove(f.HubID)
		return nil
	}
	if c.released.of(f.HubID) != nil {
		return fmt.Errorf("%w: hub %s is released twice", errBadEvent, f.HubID)
	}
	c.changed.remove(f.HubID)
	c.released.put(f.HubID, releasedHub{id: f.HubID, org: f.OrgID})
	return nil
}

// hub changes a hub, whether its row is made by this batch or is there.
func (c *changes) hub(id domain.HubID, org string, isNew func(*hubRow), isThere func(*hubChange)) {
	if row := c.hubs.of(id); row != nil && row.org == org {
		isNew(row)
		return
	}
	change := c.changed.of(id)
	if change == nil || change.org != org {
		change = c.changed.put(id, hubChange{id: id, org: org})
	}
	isThere(change)
}

// hubLog changes the epoch of a hub's event log.
func (c *changes) hubLog(id domain.HubID, org string, epoch domain.Epoch) {
	c.hub(id, org, func(h *hubRow) { h.epoch = epoch }, func(h *hubChange) { h.epoch = &epoch })
}

// epochColumn returns a column of the epochs of changed hubs; nil where the epoch stays.
func epochColumn[C any](hubs []hubChange, of func(domain.Epoch) C) []*C {
	return column(hubs, func(h hubChange) *C {
		if h.epoch == nil {
			return nil
		}
		value := of(*h.epoch)
		return &value
	})
}

// statements gives what is to be done, in an order in which each finds what it needs.
func (c *changes) statements() []statement {
	var all []statement
	add := func(count int, s statement) {
		if count != 0 {
			s.rows = count
			all = append(all, s)
		}
	}
	add(len(c.orgs), statement{what: "insert organizations", sql: insertOrgs, args: []any{
		column(c.orgs, func(o orgRow) string { return o.id }),
		column(c.orgs, func(o orgRow) string { return o.name }),
		column(c.orgs, func(o orgRow) time.Time { return o.created }),
	}})
	for _, s := range c.members.statements() {
		add(s.rows, s)
	}
	add(len(c.sites.list), statement{what: "insert sites", sql: insertSites, args: []any{
		column(c.sites.list, func(s siteRow) string { return s.id }),
		column(c.sites.list, func(s siteRow) string { return s.org }),
		column(c.sites.list, func(s siteRow) string { return s.name }),
		column(c.sites.list, func(s siteRow) time.Time { return s.created }),
		column(c.sites.list, func(s siteRow) int64 { return int64(s.sequence) }),
	}})
	add(len(c.renamed.list), statement{what: "rename sites", sql: renameSites, args: []any{
		column(c.renamed.list, func(s siteRow) string { return s.id }),
		column(c.renamed.list, func(s siteRow) string { return s.org }),
		column(c.renamed.list, func(s siteRow) string { return s.name }),
	}})
	add(len(c.released.list), statement{what: "delete released hubs", sql: deleteHubs, args: []any{
		column(c.released.list, func(h releasedHub) string { return string(h.id) }),
		column(c.released.list, func(h releasedHub) string { return h.org }),
	}})
	add(len(c.hubs.list), statement{what: "insert hubs", sql: insertHubs, args: []any{
		column(c.hubs.list, func(h hubRow) string { return string(h.id) }),
		column(c.hubs.list, func(h hubRow) string { return h.org }),
		column(c.hubs.list, func(h hubRow) string { return h.site }),
		column(c.hubs.list, func(h hubRow) *string { return h.name }),
		column(c.hubs.list, func(h hubRow) time.Time { return h.registered }),
		column(c.hubs.list, func(h hubRow) bool { return h.connected }),
		column(c.hubs.list, func(h hubRow) string { return h.epoch.ID.String() }),
		column(c.hubs.list, func(h hubRow) int64 { return int64(h.epoch.After) }),
		column(c.hubs.list, func(h hubRow) string { return h.epoch.Former.String() }),
	}})
	add(len(c.changed.list), statement{what: "change hubs", sql: changeHubs, args: []any{
		column(c.changed.list, func(h hubChange) string { return string(h.id) }),
		column(c.changed.list, func(h hubChange) string { return h.org }),
		column(c.changed.list, func(h hubChange) *string { return h.site }),
		column(c.changed.list, func(h hubChange) bool { return h.renamed }),
		column(c.changed.list, func(h hubChange) *string { return h.name }),
		epochColumn(c.changed.list, func(e domain.Epoch) string { return e.ID.String() }),
		epochColumn(c.changed.list, func(e domain.Epoch) int64 { return int64(e.After) }),
		epochColumn(c.changed.list, func(e domain.Epoch) string { return e.Former.String() }),
	}})
	for _, s := range c.labels.statements() {
		add(s.rows, s)
	}
	add(len(c.keys.list), statement{what: "insert keys", sql: insertKeys, args: []any{
		column(c.keys.list, func(k keyRow) string { return k.id }),
		column(c.keys.list, func(k keyRow) string { return k.org }),
		column(c.keys.list, func(k keyRow) string { return k.label }),
		column(c.keys.list, func(k keyRow) string { return k.environment }),
		column(c.keys.list, func(k keyRow) words { return words(joinScopes(k.scopes)) }),
		column(c.keys.list, func(k keyRow) []byte { return k.hash }),
		column(c.keys.list, func(k keyRow) time.Time { return k.at }),
	}})
	add(len(c.revoked.list), statement{what: "revoke keys", sql: revokeKeys, args: []any{
		column(c.revoked.list, func(k keyRow) string { return k.id }),
		column(c.revoked.list, func(k keyRow) string { return k.org }),
		column(c.revoked.list, func(k keyRow) time.Time { return k.at }),
	}})
	if s := c.activityStatement(); s.rows > 0 {
		add(s.rows, s)
		add(anyRows, expireActivity())
	}
	return all
}

// size is how many rows it makes and changes, activity left out.
func (c *changes) size() int {
	return len(c.orgs) + len(c.sites.list) + len(c.renamed.list) + len(c.hubs.list) + len(c.changed.list) + len(c.released.list) + len(c.keys.list) + len(c.revoked.list) +
		c.members.size() + len(c.labels.cleared.list) + len(c.labels.labels.list)
}

// words are texts without a space, with a space between them, which a table has as an array.
type words string

// joinScopes writes scopes as one text; none of them has a space.
func joinScopes(scopes []domain.Scope) string {
	return strings.Join(column(scopes, func(s domain.Scope) string { return string(s) }), " ")
}
