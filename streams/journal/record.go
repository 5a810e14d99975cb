package journal

import (
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// MaxCommitBytes is the most bytes of a commit as it is stored. The broker accepts messages of
	// 1 MiB.
	MaxCommitBytes = 768 << 10
	// MaxRecords is the most records of a commit.
	MaxRecords = 8192
	// MaxPayload is the most bytes of one record's payload: a hub's largest event with its
	// envelope.
	MaxPayload = 64 << 10
	// MaxState is the most bytes of the payload of a KindState: it is a header of a message, in
	// base64, and the broker accepts 64 KiB of headers.
	MaxState = 40 << 10
	// maxText is the most bytes of each text of a record: the hub's id, OrgID, OwnLog, Connection.
	maxText = 4 << 10
)

// Kind is the kind of a record. It decides the record's subject in the hub's log. The numbers are
// stored.
type Kind uint8

// The kinds of records.
const (
	// KindHubEvent is an event that the hub sent.
	KindHubEvent Kind = 1
	// KindCloudEvent is a `hub.*` event, which the cloud writes.
	KindCloudEvent Kind = 2
	// KindCommand is the record of a command: its request or its outcome.
	KindCommand Kind = 3
	// KindState is a record of the state of the hub's devices, which the service keeps for itself.
	// No reader of the hub's log sees it.
	KindState Kind = 4
)

// IsEvent reports whether records of the kind are events.
func (k Kind) IsEvent() bool { return k == KindHubEvent || k == KindCloudEvent }

// hasOrigin reports whether records of the kind have an epoch and an organization.
func (k Kind) hasOrigin() bool { return k.IsEvent() || k == KindState }

// Subject returns the subject of the hub's records of the kind in the hub's log. Records of states
// are under the subject of commands, because the programs of taps leave that one out.
func (k Kind) Subject(hub domain.HubID) string {
	switch k {
	case KindHubEvent:
		return streams.HubEventSubject(hub)
	case KindCloudEvent:
		return streams.CloudEventSubject(hub)
	default:
		return streams.CommandSubject(hub)
	}
}

// Record is one message of one hub's log.
type Record struct {
	Hub domain.HubID
	// Seq is the sequence in the hub's log, from 1. The records of a hub rise by one.
	Seq uint64
	// Time is when the writer stored the record, in UTC and with nanoseconds. Times grow strictly
	// within a group.
	Time time.Time
	Kind Kind
	// EpochID is the id of the log's epoch. It is zero for commands, like all fields below except
	// Payload. Records of states have none of them either, except OrgID.
	EpochID domain.EpochID
	// OrgID is the organization that has the hub. It may be empty.
	OrgID string
	// OwnLog is the hub's name for its log; "" for none. Through is a number of that log: with this
	// record everything up to Through is stored or known to be lost. Through is 0 without an
	// OwnLog.
	OwnLog  string
	Through uint64
	// Events is how many events the hub's log has had up to and including this record. The commit
	// sets it.
	Events uint64
	// Connection is opaque text, stored with hub.connected and hub.disconnected.
	Connection string
	// Payload is the event or the command's record as one line of JSON, or a state. This package
	// does not read it. The payloads of a commit share memory: copy one that is kept for long.
	Payload []byte
	// StandIn reports that the record stands in for one that the journal has lost. It is not
	// stored.
	StandIn bool
}

// recordOverhead is the most bytes that a record takes in a commit beside its texts and its
// payload: the numbers of the record and of its hub.
const recordOverhead = 96

// Size returns the most bytes that the record can take in a commit; it mostly takes less than half
// beside its payload. Records whose sizes add up to at most MaxCommitBytes - CommitOverhead fit
// into one commit.
func (r *Record) Size() int {
	return recordOverhead + len(r.Hub) + len(r.OrgID) + len(r.OwnLog) + len(r.Connection) +
		len(r.Payload)
}

// Validate returns an error that names the invalid field, if there is one.
func (r *Record) Validate() error {
	switch {
	case r.Seq == 0:
		return errors.New("sequence: must be at least 1")
	case r.Time.UnixNano() <= 0:
		return fmt.Errorf("time: is %v, must be after 1970", r.Time)
	}
	return r.validateContent()
}

// validateContent is Validate for a record that has no sequence and time yet.
func (r *Record) validateContent() error {
	switch {
	case r.Hub == "":
		return errors.New("hub: is missing")
	case len(r.Payload) > MaxPayload:
		return fmt.Errorf("payload: has %d bytes, must be at most %d", len(r.Payload), MaxPayload)
	case max(len(r.Hub), len(r.OrgID), len(r.OwnLog), len(r.Connection)) > maxText:
		return fmt.Errorf("hub, organization, log and connection: must be at most %d bytes", maxText)
	case r.OwnLog == "" && r.Through != 0:
		return errors.New("through: must be 0 without a log of the hub's own")
	}
	switch r.Kind {
	case KindHubEvent, KindCloudEvent:
		if r.EpochID.IsZero() {
			return errors.New("epoch: is missing")
		}
	case KindCommand:
		if !r.EpochID.IsZero() || r.OrgID != "" || r.OwnLog != "" || r.Connection != "" {
			return errors.New("command: must have no epoch, organization, log or connection")
		}
	case KindState:
		if r.EpochID.IsZero() {
			return errors.New("epoch: is missing")
		}
		if r.OwnLog != "" || r.Connection != "" {
			return errors.New("state: must have no log or connection")
		}
		if len(r.Payload) > MaxState {
			return fmt.Errorf("state: has %d bytes, must be at most %d", len(r.Payload), MaxState)
		}
	default:
		return fmt.Errorf("kind: is %d, must be one of an event, a command or a state", r.Kind)
	}
	return nil
}
