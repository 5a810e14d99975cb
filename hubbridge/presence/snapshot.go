package presence

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// connectionSnapshot is the connection part of a presence, as stored with a record of a hub's log.
type connectionSnapshot struct {
	Online bool      `json:"online"`
	Since  time.Time `json:"since"`
	IP     string    `json:"ip,omitempty"`
	Reason *string   `json:"reason,omitempty"`
	Server string    `json:"server"`
	CID    uint64    `json:"cid"`
	Start  time.Time `json:"start"`
}

// MarshalConnection returns the connection part of p as one line of JSON, for a header of the
// record that announces it. The record is written before the presence bucket: a bridge that stops
// in between restores the presence from the header, and does not announce the transition twice.
func MarshalConnection(p domain.Presence) string {
	c := p.Connection
	text, err := json.Marshal(
		connectionSnapshot{p.Online, p.Since, p.PublicIP, p.Reason, c.Server, c.CID, c.Start},
	)
	if err != nil {
		return "" // only for times beyond the year 9999
	}
	return string(text)
}

// RestoreConnection returns p with the connection part that MarshalConnection wrote to text, or p
// itself if text is not such a part.
func RestoreConnection(p domain.Presence, text string) domain.Presence {
	var c connectionSnapshot
	if json.Unmarshal([]byte(text), &c) != nil || c.Server == "" {
		return p
	}
	p.Online, p.Since, p.PublicIP, p.Reason = c.Online, c.Since, c.IP, c.Reason
	p.Connection = domain.Connection{Server: c.Server, CID: c.CID, Start: c.Start}
	return p
}
