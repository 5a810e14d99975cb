package domain

import (
	"encoding/json"
	"time"
)

// Presence is the state of a hub's connection. It is one record in the presence bucket for each hub
// of the inventory that has ever connected, written only by the hub's bridge.
type Presence struct {
	HubID HubID `json:"hub_id"`
	// Online is as reported by the broker, never by the hub.
	Online bool `json:"online"`
	// Since is when Online last changed.
	Since time.Time `json:"since"`
	// PublicIP is the address the hub last connected from.
	PublicIP string `json:"public_ip,omitempty"`
	// Reason is the broker's disconnect reason in lower case; nil while online, and if the broker
	// gave none.
	Reason *string `json:"reason,omitempty"`
	// Connection is the current connection, or the last one.
	Connection Connection `json:"connection"`
	// Firmware and Network are from the hub's last hello, in the contract's form; nil before.
	Firmware json.RawMessage `json:"firmware,omitempty"`
	Network  json.RawMessage `json:"network,omitempty"`
	// Credentials is whether the hub's last hello says that it sets codes of locks.
	Credentials bool `json:"credentials,omitempty"`
}

// Connection identifies a connection of a hub to a broker. No two connections are equal.
type Connection struct {
	Server string    `json:"server"`
	CID    uint64    `json:"cid"`
	Start  time.Time `json:"start"`
}

// Same reports whether c and other are the same connection. A server has a new id each time it
// starts, and never uses a connection id twice.
func (c Connection) Same(other Connection) bool {
	return c.Server == other.Server && c.CID == other.CID
}

// ReasonServerShutdown is the reason of the disconnections of all hubs of a broker's server that
// has ended: the service was restarted, or a server of its cluster is away.
const ReasonServerShutdown = "server shutdown"

// ReconnectTime is how long such hubs count as reconnecting: hubs wait before each try to connect.
const ReconnectTime = 5 * time.Minute

// ReconnectingUntil returns until when a hub counts as reconnecting; zero if it does not. since and
// reason are of its last disconnection.
func ReconnectingUntil(status HubStatus, since time.Time, reason *string) time.Time {
	if status != HubOffline || reason == nil || *reason != ReasonServerShutdown {
		return time.Time{}
	}
	return since.Add(ReconnectTime)
}

// HubStatus is a hub's `connection.status`.
type HubStatus string

// The states of the contract.
const (
	HubOnline  HubStatus = "online"
	HubOffline HubStatus = "offline"
	HubUnknown HubStatus = "unknown"
)
