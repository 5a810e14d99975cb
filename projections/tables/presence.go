package tables

import (
	"time"

	"hubcloud/projections"
)

// Presence is a row of HubPresence.
type Presence struct {
	HubID                               string
	Online                              bool
	Since                               time.Time
	PublicIP, Reason, Firmware, Network *string
}

// HubPresence has the last known presence of every hub that has ever connected, added or not. The
// table is created with its primary key.
var HubPresence = newTable(
	Definition{Name: "hub_presence", Projection: projections.Presence, Key: []string{"hub_id"}},
	[]column[Presence]{
		text("hub_id", func(p *Presence) string { return p.HubID }),
		boolean("online", func(p *Presence) bool { return p.Online }),
		timestamp("since", func(p *Presence) time.Time { return p.Since }),
		nullableText("public_ip", func(p *Presence) *string { return p.PublicIP }),
		nullableText("reason", func(p *Presence) *string { return p.Reason }),
		nullableText("firmware", func(p *Presence) *string { return p.Firmware }),
		nullableText("network", func(p *Presence) *string { return p.Network }),
	},
).replacing("online", "since", "public_ip", "reason", "firmware", "network")
