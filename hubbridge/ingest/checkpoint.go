package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// maxRetired is how many former logs of a hub are remembered. A message of a former log, for
// instance over a connection that has been taken over, is not a reset.
const maxRetired = 8

// checkpoint is the stored state of a hub's own log, in the bucket CheckpointBucket.
type checkpoint struct {
	// Epoch is the id of the event log's epoch; zero while no organization has the hub.
	Epoch domain.EpochID `json:"epoch,omitzero"`
	// Log is the identity of the hub's own log. Every number up to Through is stored or skipped.
	Log     string `json:"log"`
	Through uint64 `json:"through"`
	// StreamSeq is the sequence in the hub's stream up to which the checkpoint accounts for every
	// event.
	StreamSeq uint64 `json:"stream_seq"`
	// Retired holds the hub's former logs, the last maxRetired, oldest first.
	Retired []string  `json:"retired,omitempty"`
	SavedAt time.Time `json:"saved_at"`
}

// flush writes the checkpoint if the hub's log has changed since the last one.
func (s *hubState) flush(ctx context.Context) error {
	// The checkpoint of a released log would assign its events to the hub's present owner.
	if !s.loaded || !s.dirty || s.log.released {
		return nil
	}
	if err := s.requireLease(); err != nil {
		return err
	}
	if s.log.unaccounted == 0 {
		// Every event is accounted for, also the cloud's events, which have no number.
		s.log.accountedSeq = max(s.log.accountedSeq, s.log.lastEventSeq)
	}
	c := checkpoint{
		Epoch: s.log.epoch, Log: s.log.ownLog, Through: s.log.through,
		StreamSeq: s.log.accountedSeq, Retired: s.log.retired,
		SavedAt: s.now(),
	}
	revision, err := s.shard.cfg.Checkpoints.CompareAndSetJSON(
		ctx, string(s.hub), c, s.checkpointRevision,
	)
	if err != nil {
		s.checkpointRead = false
		return s.writeFailed(err)
	}
	s.checkpoint, s.checkpointRevision, s.dirty = c, revision, false
	return nil
}

// writeFailed marks the state as not loaded and returns the error of the write, with errStale if
// the write conflicted or its outcome is unknown.
func (s *hubState) writeFailed(err error) error {
	s.loaded = false
	if errors.Is(err, jsapi.ErrConflict) || errors.Is(err, jsapi.ErrOutcomeUnknown) {
		s.shard.cfg.Metrics.conflicts.Inc()
		return errors.Join(errStale, err)
	}
	return err
}

// errStale reports that the stored state of a hub may be newer than the loaded one: another process
// has written it, or the outcome of a write of this process is unknown.
var errStale = errors.New("the hub's stored state may have changed")

// retire returns retired with the log ended, unless ended is the current log. The current log is in
// no case retired.
func retire(retired []string, ended, current string) []string {
	retired = slices.DeleteFunc(
		slices.Clone(retired), func(log string) bool { return log == current || log == ended },
	)
	if ended != "" && ended != current {
		retired = append(retired, ended)
	}
	return retired[max(0, len(retired)-maxRetired):]
}
