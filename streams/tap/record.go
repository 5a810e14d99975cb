package tap

import (
	"encoding/json"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/hublog"
)

// Types of records that no hub has sent. They come in the place where a consumer of the hub's
// events must know of them, whatever Config.Types says.
const (
	// TypeGap: events of the hub may be missing before what follows; its data is a Gap.
	TypeGap = "tap.gap"
	// TypeLogBegun: the hub was reset, and what follows is of another log; its data is a LogBegun.
	TypeLogBegun = "tap.log_begun"
	// TypeCommand: a command to the hub, as requested or with its outcome; its data is as the
	// service stores it.
	TypeCommand = "tap.command"
)

// Gap is the data of TypeGap.
type Gap struct {
	// Reason is GapExpired or GapReplaced.
	Reason string `json:"reason"`
	// From and To are the sequences of what is missing, both included. Commands are among them, and
	// count as well; null when it is not known.
	From *uint64 `json:"from"`
	To   *uint64 `json:"to"`
}

const (
	// GapExpired: retention, or somebody with the service's own rights, removed messages before
	// they were read.
	GapExpired = "expired"
	// GapReplaced: the log is not the one that was read before, such as after a restore. What
	// follows begins with the oldest that it has.
	GapReplaced = "log_replaced"
)

// LogBegun is the data of TypeLogBegun: the tags of the log that ended and of the one that begins.
type LogBegun struct {
	Former string `json:"former"`
	Log    string `json:"log"`
}

// Record is what is delivered: an event, or what the tap itself has to tell.
type Record struct {
	Hub domain.HubID
	// OrgID may be empty.
	OrgID string
	Type  string
	// ID is the record's identity within the hub: when the same record is delivered again, it has
	// the same one.
	ID string
	// Seq is the sequence in the hub's log, and Stored when it was stored; 0 and zero for what is
	// not stored there.
	Seq    uint64
	Stored time.Time
	// Envelope is the contract's envelope as one JSON line, in which the tap's own records have
	// what they can.
	Envelope []byte
}

func eventRecord(id domain.HubID, m hublog.Message) Record {
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

// commandRecord makes the record of a stored command, of which at is the position.
func commandRecord(id domain.HubID, m hublog.Message, at hublog.Position) (Record, error) {
	cursor, err := at.Cursor()
	if err != nil {
		return Record{}, err
	}
	data := json.RawMessage(m.Command)
	if !json.Valid(data) {
		return Record{}, fmt.Errorf("sequence %d: the command is no JSON", m.Seq)
	}
	r := Record{Hub: id, Type: TypeCommand, ID: cursor, Seq: m.Seq, Stored: m.Stored}
	r.Envelope, err = envelope(r, &cursor, m.Stored, data)
	return r, err
}

// notice makes a record of the tap's own, which is told at a position.
func notice(id domain.HubID, typ string, at hublog.Position, data any) (Record, error) {
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
