package presence

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// told is what a record in a hub's log carries of the hub's presence as of that record.
type told struct {
	Online bool      `json:"online"`
	Since  time.Time `json:"since"`
	IP     string    `json:"ip,omitempty"`
	Reason *string   `json:"reason,omitempty"`
	Server string    `json:"server"`
	CID    uint64    `json:"cid"`
	Start  time.Time `json:"start"`
}

// Tell writes the connection part of a presence as one line of text, for the header of a record. A
// bridge that stops between the record and the bucket reads there what it has told, and does not
// tell it again.
func Tell(p domain.Presence) string {
	c := p.Connection
	text, err := json.Marshal(
		told{p.Online, p.Since, p.PublicIP, p.Reason, c.Server, c.CID, c.Start},
	)
	if err != nil {
		return "" // times beyond the year 9999 only
	}
	return string(text)
}

// Recall lays what Tell wrote over a presence. Text that Tell did not write changes nothing.
func Recall(p domain.Presence, text string) domain.Presence {
	var t told
	if json.Unmarshal([]byte(text), &t) != nil || t.Server == "" {
		return p
	}
	p.Online, p.Since, p.PublicIP, p.Reason = t.Online, t.Since, t.IP, t.Reason
	p.Connection = domain.Connection{Server: t.Server, CID: t.CID, Start: t.Start}
	return p
}
