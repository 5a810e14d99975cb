package projector

import (
	_ "embed"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

var (
	//go:embed sql/clear_labels.sql
	clearLabels string
	//go:embed sql/delete_labels.sql
	deleteLabels string
)

// labelChanges are the changes of schema.DeviceLabels. The statements first delete all labels of
// the cleared hubs, and then set or delete the last label of each device.
type labelChanges struct {
	cleared rows[domain.HubID, domain.HubID]
	// labels has a zero label for each device whose label is deleted.
	labels rows[deviceKey, schema.DeviceLabel]
}

type deviceKey struct {
	hub    domain.HubID
	device int64
}

func (c *labelChanges) set(org string, hub domain.HubID, device int64, label domain.DeviceLabel) {
	row := schema.DeviceLabel{OrgID: org, HubID: hub, DeviceID: device, DeviceLabel: label}
	key := deviceKey{hub, device}
	if known := c.labels.get(key); known != nil {
		*known = row
		return
	}
	c.labels.put(key, row)
}

// clear deletes all labels of a hub, including labels of this batch.
func (c *labelChanges) clear(hub domain.HubID) {
	if !c.cleared.has(hub) {
		c.cleared.put(hub, hub)
	}
	for i := range c.labels.list {
		if c.labels.list[i].HubID == hub {
			c.labels.list[i].DeviceLabel = domain.DeviceLabel{}
		}
	}
}

func (c *labelChanges) size() int { return len(c.cleared.list) + len(c.labels.list) }

func (c *labelChanges) addTo(all *statements) {
	var set, deleted []schema.DeviceLabel
	for _, row := range c.labels.list {
		if row.DeviceLabel == (domain.DeviceLabel{}) {
			deleted = append(deleted, row)
		} else {
			set = append(set, row)
		}
	}
	all.add(changeAny(
		"clear labels", clearLabels, c.cleared.list,
		column(func(hub domain.HubID) string { return string(hub) }),
	))
	all.add(changeAny(
		"delete labels", deleteLabels, deleted,
		column(func(l schema.DeviceLabel) string { return string(l.HubID) }),
		column(func(l schema.DeviceLabel) int64 { return l.DeviceID }),
	))
	all.add(schema.DeviceLabels.Insert(set))
}
