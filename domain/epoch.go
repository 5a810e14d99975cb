package domain

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Epoch is one life of a hub's event log in the cloud. A position in the log is an epoch and a
// sequence of the hub's stream; every cursor carries both. A new epoch begins when the hub is
// added to an organization, when it is reset to factory state, and when the installation is
// restored from a backup. Cursors of an epoch that is over are expired.
//
// An epoch is not the log id of the hub protocol. A hub numbers its events within a log of its own
// and names that log itself (`log` in its messages). This code calls the hub's name for its log
// OwnLog, and its numbers Through, From and To. The epoch and the stream's sequences are the
// cloud's; the hub never sees them.
//
// The zero value is the epoch of a hub that no organization has: no event belongs to it.
type Epoch struct {
	// ID is the id that events carry which are stored from now on.
	ID EpochID
	// After is a sequence of the hub's stream: messages up to and including it belong to former
	// logs and are never read again.
	After uint64
	// Former are the ids of the log's older events, oldest first. They are set only when the
	// installation was restored from a backup since the log was begun.
	Former FormerEpochs
}

// At returns the id that an event of the log carries at a sequence of the hub's stream.
func (e Epoch) At(sequence uint64) EpochID {
	for _, former := range e.Former {
		// A former epoch of which the backup had nothing covers no sequence, not even 0.
		if sequence <= former.Through && former.Through > 0 {
			return former.ID
		}
	}
	return e.ID
}

// Has reports whether an event with that id, at that sequence of the hub's stream, belongs to the
// log.
func (e Epoch) Has(sequence uint64, id EpochID) bool {
	return sequence > e.After && id == e.At(sequence)
}

// Restored returns the log's epoch after a restore from a backup: events up to the sequence kept
// are back in the hub's stream, everything behind it is lost, and what is stored from now on
// carries id. kept is 0 when the backup had nothing of the log.
func (e Epoch) Restored(id EpochID, kept uint64) Epoch {
	former := append(slices.Clone(e.Former), FormerEpoch{ID: e.ID, Through: kept})
	former = former[max(0, len(former)-maxFormerEpochs):]
	for i := range former {
		former[i].Through = min(former[i].Through, kept)
	}
	return Epoch{ID: id, After: min(e.After, kept), Former: former}
}

// maxFormerEpochs is how many restores an epoch remembers. Events from before those are not read
// any more.
const maxFormerEpochs = 8

// EpochID identifies an epoch of a hub's log. Its text is 8 hexadecimal digits in lower case. The
// zero value stands for an unknown epoch, or for none.
type EpochID [4]byte

// NewEpochID returns the id with those bits. 0 is the zero value.
func NewEpochID(bits uint32) (id EpochID) {
	binary.BigEndian.PutUint32(id[:], bits)
	return id
}

// ParseEpochID reads the 8 hexadecimal digits of an id.
func ParseEpochID(text string) (id EpochID, err error) {
	if len(text) != 2*len(id) {
		return id, fmt.Errorf("epoch %q: must be 8 hexadecimal digits", text)
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return EpochID{}, fmt.Errorf("epoch %q: must be 8 hexadecimal digits", text)
	}
	return id, nil
}

// IsZero reports whether the id names no epoch.
func (id EpochID) IsZero() bool { return id == EpochID{} }

// String returns the id as 8 hexadecimal digits.
func (id EpochID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns String.
func (id EpochID) MarshalText() ([]byte, error) {
	return hex.AppendEncode(make([]byte, 0, 2*len(id)), id[:]), nil
}

// UnmarshalText reads an id as ParseEpochID does. An empty text is the zero value.
func (id *EpochID) UnmarshalText(text []byte) (err error) {
	*id = EpochID{}
	if len(text) > 0 {
		*id, err = ParseEpochID(string(text))
	}
	return err
}

// FormerEpoch is an id that a restored log had before the restore.
type FormerEpoch struct {
	ID EpochID
	// Through is the last sequence whose event still carries ID: later ones were lost, and other
	// events have their sequences now. 0 when the backup had nothing of the log. The id is then on
	// no event, but records outside the log may still name it.
	Through uint64
}

// FormerEpochs are the former ids of a restored log, oldest first; empty for a log that was never
// restored. As text they are `id:through`, separated by spaces.
type FormerEpochs []FormerEpoch

// ParseFormerEpochs reads the text of former epochs. Unreadable entries are left out: no event
// carries such an id.
func ParseFormerEpochs(text string) FormerEpochs {
	var all FormerEpochs
	for entry := range strings.FieldsSeq(text) {
		idText, sequence, _ := strings.Cut(entry, ":")
		id, err := ParseEpochID(idText)
		if err != nil {
			continue
		}
		if through, err := strconv.ParseUint(sequence, 10, 64); err == nil {
			all = append(all, FormerEpoch{ID: id, Through: through})
		}
	}
	return all
}

// Find returns the former epoch with that id.
func (f FormerEpochs) Find(id EpochID) (FormerEpoch, bool) {
	for _, former := range f {
		if former.ID == id {
			return former, true
		}
	}
	return FormerEpoch{}, false
}

// String returns the text that ParseFormerEpochs reads.
func (f FormerEpochs) String() string {
	var text strings.Builder
	for i, former := range f {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(former.ID.String())
		text.WriteByte(':')
		text.WriteString(strconv.FormatUint(former.Through, 10))
	}
	return text.String()
}

// MarshalText returns String.
func (f FormerEpochs) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (f *FormerEpochs) UnmarshalText(text []byte) error {
	*f = ParseFormerEpochs(string(text))
	return nil
}
