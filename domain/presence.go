package domain

import (
	"encoding/json"
	"time"
)

// Presence is what the service keeps about a hub's connection, one record a hub in the presence
// bucket, written by the hub's bridge alone. It is kept for every hub of the inventory that has
// ever connected, also before an organization has added it.
type Presence struct {
	HubID HubID `json:"hub_id"`
	// Online is the broker's word, never the hub's.
	Online bool `json:"online"`
	// Since is when Online last changed.
	Since time.Time `json:"since"`
	// PublicIP is the address the hub last connected from.
	PublicIP string `json:"public_ip,omitempty"`
	// Reason is the broker's disconnect reason in lower case; nil while online, or when the broker
	// gave none.
	Reason *string `json:"reason,omitempty"`
	// Connection is the connection that makes it online, or the last that did.
	Connection Connection `json:"connection"`
	// Firmware and Network are what the hub said when it last said hello, as the contract writes
	// them; nil before.
	Firmware json.RawMessage `json:"firmware,omitempty"`
	Network  json.RawMessage `json:"network,omitempty"`
}

// Connection names one connection of a hub to a broker. No two are the same.
type Connection struct {
	Server string    `json:"server"`
	CID    uint64    `json:"cid"`
	Start  time.Time `json:"start"`
}

// HubStatus is a hub's `connection.status`.
type HubStatus string

// The states of the contract.
const (
	HubOnline  HubStatus = "online"
	HubOffline HubStatus = "offline"
	HubUnknown HubStatus = "unknown"
)
