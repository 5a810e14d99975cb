package projections

import "hubcloud/domain"

// labelChanges is what a batch does to the names and rooms of devices: hubs whose labels all go,
// and then the last label of each device.
type labelChanges struct {
	cleared rows[domain.HubID, domain.HubID]
	labels  rows[labelKey, labelRow]
}

type labelKey struct {
	hub    domain.HubID
	device int64
}

// labelRow is a label; the zero label is none.
type labelRow struct {
	labelKey
	org   string
	label domain.DeviceLabel
}

func (c *labelChanges) set(org string, hub domain.HubID, device int64, label domain.DeviceLabel) {
	row := labelRow{labelKey: labelKey{hub, device}, org: org, label: label}
	if known := c.labels.of(row.labelKey); known != nil {
		*known = row
		return
	}
	c.labels.put(row.labelKey, row)
}

// clear forgets all labels of a hub, those of this batch too.
func (c *labelChanges) clear(hub domain.HubID) {
	if c.cleared.of(hub) == nil {
		c.cleared.put(hub, hub)
	}
	for i := range c.labels.list {
		if c.labels.list[i].hub == hub {
			c.labels.list[i].label = domain.DeviceLabel{}
		}
	}
}

func (c *labelChanges) statements() []statement {
	var set, gone []labelRow
	for _, row := range c.labels.list {
		if row.label == (domain.DeviceLabel{}) {
			gone = append(gone, row)
		} else {
			set = append(set, row)
		}
	}
	hub := func(l labelRow) string { return string(l.hub) }
	device := func(l labelRow) int64 { return l.device }
	return []statement{
		{
			what: "clear names and rooms",
			sql:  clearLabels,
			rows: anyRowsOf(c.cleared.list),
			args: []any{
				column(c.cleared.list, func(hub domain.HubID) string { return string(hub) }),
			},
		},
		{
			what: "delete names and rooms",
			sql:  deleteLabels,
			rows: anyRowsOf(gone),
			args: []any{column(gone, hub), column(gone, device)},
		},
		{what: "write names and rooms", sql: upsertLabels, rows: len(set), args: []any{
			column(set, func(l labelRow) string { return l.org }),
			column(set, hub),
			column(set, device),
			column(set, func(l labelRow) *string { return l.label.Name }),
			column(set, func(l labelRow) *string { return l.label.Room }),
		}},
	}
}

// anyRowsOf is how many rows a statement about the list must change: none without one, and nobody
// knows how many otherwise.
func anyRowsOf[R any](list []R) int {
	if len(list) == 0 {
		return 0
	}
	return anyRows
}
