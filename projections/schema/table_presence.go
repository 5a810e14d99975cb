package schema

import (
	"time"
)

// PresenceRow is a row of HubPresence.
type PresenceRow struct {
	HubID                               string
	Online                              bool
	Since                               time.Time
	PublicIP, Reason, Firmware, Network *string
}

// HubPresence has the last known presence of every hub that has ever connected, added or not. The
// table is created with its primary key.
var HubPresence = newTable(
	Definition{Name: "hub_presence", Projection: Presence, Key: []string{"hub_id"}},
	[]column[PresenceRow]{
		text("hub_id", func(p *PresenceRow) string { return p.HubID }),
		boolean("online", func(p *PresenceRow) bool { return p.Online }),
		timestamp("since", func(p *PresenceRow) time.Time { return p.Since }),
		nullableText("public_ip", func(p *PresenceRow) *string { return p.PublicIP }),
		nullableText("reason", func(p *PresenceRow) *string { return p.Reason }),
		nullableText("firmware", func(p *PresenceRow) *string { return p.Firmware }),
		nullableText("network", func(p *PresenceRow) *string { return p.Network }),
	},
).upserting()
