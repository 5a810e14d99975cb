package apply

import (
	_ "embed"

	"hubcloud/domain"
	"hubcloud/projections/tables"
)

var (
	//go:embed sql/clear_labels.sql
	clearLabels string
	//go:embed sql/delete_labels.sql
	deleteLabels string
)

// labelChanges are the changes of tables.DeviceLabels. The statements first delete all labels of the
// cleared hubs, and then set or delete the last label of each device.
type labelChanges struct {
	cleared rows[domain.HubID, domain.HubID]
	// labels has a zero label for each device whose label is deleted.
	labels rows[deviceKey, tables.DeviceLabel]
}

type deviceKey struct {
	hub    domain.HubID
	device int64
}

func (c *labelChanges) set(org string, hub domain.HubID, device int64, label domain.DeviceLabel) {
	row := tables.DeviceLabel{OrgID: org, HubID: hub, DeviceID: device, DeviceLabel: label}
	key := deviceKey{hub, device}
	if known := c.labels.get(key); known != nil {
		*known = row
		return
	}
	c.labels.put(key, row)
}

// clear deletes all labels of a hub, also those of this batch.
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
	var set, deleted []tables.DeviceLabel
	for _, row := range c.labels.list {
		if row.DeviceLabel == (domain.DeviceLabel{}) {
			deleted = append(deleted, row)
		} else {
			set = append(set, row)
		}
	}
	all.add(tables.Statement{
		What: "clear labels", SQL: clearLabels, Rows: anyRows(c.cleared.list),
		Args: func() []any {
			return []any{
				column(c.cleared.list, func(hub domain.HubID) string { return string(hub) }),
			}
		},
	})
	all.add(tables.Statement{
		What: "delete labels", SQL: deleteLabels, Rows: anyRows(deleted),
		Args: func() []any {
			return []any{
				column(deleted, func(l tables.DeviceLabel) string { return string(l.HubID) }),
				column(deleted, func(l tables.DeviceLabel) int64 { return l.DeviceID }),
			}
		},
	})
	all.add(tables.DeviceLabels.Insert(set))
}

// anyRows returns tables.AnyRows, or 0 for an empty list, so that statements.add leaves the
// statement out.
func anyRows[R any](list []R) int {
	if len(list) == 0 {
		return 0
	}
	return tables.AnyRows
}
