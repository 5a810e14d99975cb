package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// maxRetired is how many former logs of a hub are remembered: what still comes of one, over a
// connection that has been taken over for instance, is no reset.
const maxRetired = 8

// ledger is what is put aside about a hub's own log, in the bucket of that name.
type ledger struct {
	// Epoch is the id of the event log's epoch; zero while no organization has the hub.
	Epoch domain.EpochID `json:"incarnation,omitzero"`
	// Log is the hub's name of its log, and Through the number up to which it is settled.
	Log     string `json:"log"`
	Through uint64 `json:"through"`
	// StreamSeq is the sequence in the hub's stream that this speaks of: everything up to it is
	// taken into account.
	StreamSeq uint64 `json:"stream_seq"`
	// Retired are the hub's former logs, the last maxRetired, oldest first.
	Retired []string  `json:"retired,omitempty"`
	SavedAt time.Time `json:"saved_at"`
}

// flush writes the ledger if the hub's log has moved on since.
func (s *session) flush(ctx context.Context) error {
	// a ledger would say that all is settled with the hub's owner of now
	if !s.loaded || !s.dirty || s.log.foreign {
		return nil
	}
	if err := s.mustHold(); err != nil {
		return err
	}
	if s.log.slack == 0 {
		// Nothing is unknown: it speaks of every event that there is, also of those that say
		// nothing of the hub's log.
		s.log.seq = max(s.log.seq, s.log.last)
	}
	l := ledger{
		Epoch: s.log.epoch, Log: s.log.name, Through: s.log.through,
		StreamSeq: s.log.seq, Retired: s.log.retired,
		SavedAt: s.now(),
	}
	revision, err := s.shard.cfg.Ledger.CompareAndSetJSON(ctx, string(s.hub), l, s.ledgerRevision)
	if err != nil {
		s.ledgerRead = false
		return s.moved(err)
	}
	s.ledger, s.ledgerRevision, s.dirty = l, revision, false
	return nil
}

// moved is err, as errMoved if it says that the state may be another than this session knows:
// somebody else has written, or it is not sure whether this session has.
func (s *session) moved(err error) error {
	s.loaded = false
	if errors.Is(err, jsapi.ErrConflict) || errors.Is(err, jsapi.ErrOutcomeUnknown) {
		s.shard.cfg.Metrics.conflicts.Inc()
		return errors.Join(errMoved, err)
	}
	return err
}

var errMoved = errors.New("the hub's records have moved on")

// retire adds a log to those that have ended.
func retire(retired []string, ended, current string) []string {
	retired = slices.DeleteFunc(
		slices.Clone(retired), func(log string) bool { return log == current || log == ended },
	)
	if ended != "" && ended != current {
		retired = append(retired, ended)
	}
	return retired[max(0, len(retired)-maxRetired):]
}
