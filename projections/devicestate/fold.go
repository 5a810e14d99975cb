package devicestate

import (
	"fmt"
	"time"

	"hubcloud/domain"
)

// Entry is a record of a hub's log.
type Entry struct {
	// Seq is its sequence in the log, Time its time in the log.
	Seq  uint64
	Time time.Time
	// Number is the hub's own number of an event of the hub, and the last number that
	// hub.events_skipped stands for; 0 if it is not known. It is not used for other records.
	Number uint64
	// EpochID is the epoch of an event. It is not used for other records.
	EpochID domain.EpochID
	// Event is the stored form of an event (domain.HubEvent); nil for other records.
	Event []byte
	// State is a read or a part of a snapshot, as MarshalRead and Hub.MarshalSnapshot return them;
	// nil for other records.
	State []byte
	// Full reports that the hub's organization has as many channels as are kept: the entry adds none.
	Full bool
}

// Fold folds the next entry of the log. Entries up to h.Seq are ignored. Records that are neither
// events nor state only move Seq. After an error the entry counts as folded, and the state is in
// doubt: the entry cannot be decoded.
func (h *Hub) Fold(e Entry) error {
	if e.Seq <= h.Seq {
		return nil
	}
	logged := e.Time.UTC()
	e.Time = e.Time.UTC().Truncate(time.Microsecond) // as precise as the database
	switch {
	case e.Event != nil:
		if h.Seq == 0 || e.EpochID != h.EpochID {
			// What the log had before the first entry is not known.
			var before Mark
			if h.Seq == 0 {
				before.Seq = e.Seq - 1
			}
			*h = Hub{EpochID: e.EpochID, Since: e.Time, Doubt: before, Reshaped: e.Seq}
		}
		h.Seq, h.EventSeq, h.At, h.logged = e.Seq, e.Seq, e.Time, logged
		h.orgFull = e.Full
		if err := h.foldEvent(e); err != nil {
			h.doubt(Mark{e.Seq, e.Number})
			return fmt.Errorf("event with sequence %d: %w", e.Seq, err)
		}
	case e.State != nil:
		h.Seq, h.At, h.logged, h.orgFull = e.Seq, e.Time, logged, e.Full
		if err := h.foldState(e.State); err != nil {
			h.doubt(Mark{Seq: e.Seq})
			return fmt.Errorf("state with sequence %d: %w", e.Seq, err)
		}
	default:
		if h.Seq > 0 {
			h.Seq, h.At = e.Seq, e.Time
		}
	}
	return nil
}

// Lose records that entries of the log up to a sequence are gone, so that the state is in doubt.
func (h *Hub) Lose(seq uint64) {
	if seq > h.Seq {
		h.Seq = seq
	}
	h.doubt(Mark{Seq: h.Seq})
}
