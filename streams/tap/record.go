package tap

import (
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// Types of records that the tap itself adds. They are delivered whatever Config.Types selects, in
// the place where a consumer of the hub's events must know of them.
const (
	// TypeGap reports that events of the hub may be missing before the next record. Its data is a
	// Gap.
	TypeGap = "tap.gap"
	// TypeLogBegun reports that the hub was reset and the next record belongs to a new log. Its
	// data is a LogBegun.
	TypeLogBegun = "tap.log_begun"
	// TypeCommand is a command to the hub, as requested or with its outcome. Its data is the stored
	// record.
	TypeCommand = "tap.command"
)

// Gap is the data of TypeGap.
type Gap struct {
	// Reason is GapExpired or GapReplaced.
	Reason string `json:"reason"`
	// From and To are the first and last missing sequence, or null if they are not known. Sequences
	// of commands are included.
	From *uint64 `json:"from"`
	To   *uint64 `json:"to"`
}

const (
	// GapExpired: messages were removed before they were read, by retention or by an
	// administrator.
	GapExpired = "expired"
	// GapReplaced: the log is not the one read before, for example after a restore. The next record
	// is the oldest of the new log.
	GapReplaced = "log_replaced"
)

// LogBegun is the data of TypeLogBegun: the epochs of the log that ended and of the new one.
type LogBegun struct {
	Former  domain.EpochID `json:"former"`
	Current domain.EpochID `json:"log"`
}

// Record is an event, a command, or a notice of the tap itself.
type Record struct {
	Hub domain.HubID
	// OrgID is the hub's organization; empty if it is not known.
	OrgID string
	Type  string
	// ID is the record's identity within the hub. It is the same when the record is delivered
	// again.
	ID string
	// Seq is the sequence in the hub's log, and Stored the time of storing. Both are zero for
	// notices.
	Seq    uint64
	Stored time.Time
	// Envelope is the contract's event envelope as one line of JSON. In records of the tap, fields
	// without a value are null.
	Envelope []byte
}

func eventRecord(id domain.HubID, m feed.Message) Record {
	e := m.Event
	return Record{
		Hub:      id,
		OrgID:    e.OrgID,
		Type:     e.Type,
		ID:       e.Cursor,
		Seq:      m.Seq,
		Stored:   m.Stored,
		Envelope: e.Envelope,
	}
}

// commandRecord returns the record of a stored command; at is the command's position.
func commandRecord(id domain.HubID, m feed.Message, at feed.DecodedCursor) (Record, error) {
	cursor := at.Cursor()
	data := json.RawMessage(m.Command)
	if !json.Valid(data) {
		return Record{}, fmt.Errorf("sequence %d: the command is not JSON", m.Seq)
	}
	r := Record{Hub: id, Type: TypeCommand, ID: cursor, Seq: m.Seq, Stored: m.Stored}
	var err error
	r.Envelope, err = envelope(r, &cursor, m.Stored, data)
	return r, err
}

// notice returns a record of the tap itself at a position.
func notice(id domain.HubID, typ string, at feed.DecodedCursor, data any) (Record, error) {
	r := Record{Hub: id, Type: typ, ID: fmt.Sprintf("%s-%d-%d", typ, at.Seq, at.Stored.UnixMilli())}
	var err error
	r.Envelope, err = envelope(r, nil, time.Now(), data)
	return r, err
}

func envelope(r Record, cursor *string, at time.Time, data any) ([]byte, error) {
	trusted := true
	return json.Marshal(struct {
		Cursor       *string      `json:"cursor"`
		Type         string       `json:"type"`
		Hub          domain.HubID `json:"hub_id"`
		Device       *int64       `json:"device_id"`
		Time         string       `json:"time"`
		ClockTrusted *bool        `json:"clock_trusted"`
		Data         any          `json:"data"`
	}{
		Cursor: cursor, Type: r.Type, Hub: r.Hub, Time: domain.FormatTime(at),
		ClockTrusted: &trusted, Data: data,
	})
}
