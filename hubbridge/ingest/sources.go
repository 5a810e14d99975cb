package ingest

import (
	"slices"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// sources holds what is stored about a hub's log in each place; resolve derives the log's state.
type sources struct {
	access     domain.HubAccess
	lastEvents []feed.LastEvent
	checkpoint checkpoint
	// resetLog is the hub's own log since its last reset, empty without a reset; resetThrough is
	// the number before its first.
	resetLog     string
	resetThrough uint64
	// released is the log of the organization that released the hub before this one added it. It is
	// set when nothing else is stored of the present organization's log.
	released *domain.ReleasedLog
	// lastSequence is the stream's last sequence. It is set when no stored record carries a number
	// of the hub's log.
	lastSequence uint64
}

// inEpoch returns the last events that are in the log's epoch and carry a number of the hub's log.
func (src *sources) inEpoch() []feed.LastEvent {
	var events []feed.LastEvent
	for _, event := range src.lastEvents {
		if src.access.Epoch.Has(event.Seq, event.EpochID) && event.OwnLog != "" {
			events = append(events, event)
		}
	}
	return events
}

// checkpointSeq returns the sequence in the stream up to which the checkpoint accounts for the log,
// and whether the checkpoint is of the log. For a checkpoint from before a restore it is a sequence
// that was restored. A checkpoint that is newer than what is left of the log, which the broker has
// lost the end of, does not count while an event is left: what it accounts for is lost.
func (src *sources) checkpointSeq() (seq uint64, ok bool) {
	if src.checkpoint.Log == "" {
		return 0, false
	}
	if src.checkpoint.Epoch == src.access.Epoch.ID {
		return src.checkpoint.StreamSeq, true
	}
	former, ok := src.access.Epoch.Former.Find(src.checkpoint.Epoch)
	if ok && src.checkpoint.StreamSeq > former.Through && len(src.inEpoch()) > 0 {
		return 0, false
	}
	return min(src.checkpoint.StreamSeq, former.Through), ok
}

// needsDirectory reports whether neither the log nor the checkpoint holds the state of the epoch.
func (src *sources) needsDirectory() bool {
	_, ok := src.checkpointSeq()
	return len(src.inEpoch()) == 0 && !ok
}

// resolve returns the state of the log. Of the sources for the epoch, the one with the highest
// sequence counts: the last record, the checkpoint, and the directory's fact about the reset that
// began the epoch. When there is none, and the hub was not reset since it was added, the checkpoint
// from before it was added counts: what was acknowledged then is no gap.
//
// After a restore from a backup the log has another epoch, and records of the former epoch still
// count. What the hub sent after the backup, had acknowledged, and no longer holds, becomes a gap
// at its next hello.
//
// The checkpoint is written after the log. If a process is killed in between and retention empties
// the log before the next load, the checkpoint is behind. The stream still has its last sequence.
// The distance to the checkpoint's sequence, the unaccounted range, is the most numbers that may
// have been stored since. If the next hello begins beyond the checkpoint by no more than that, no
// gap is recorded: those events were probably stored, and have expired. Readers miss nothing: their
// cursors have expired too.
func (src *sources) resolve() logState {
	l := logState{epoch: src.access.Epoch.ID, org: src.access.OrgID}
	for _, event := range src.lastEvents {
		l.lastEventSeq = max(l.lastEventSeq, event.Seq)
	}
	checkpointSeq, ok := src.checkpointSeq()
	// From the newest to the oldest: a checkpoint of this epoch was written after the reset that
	// began the epoch, and a checkpoint without an epoch before the hub was added.
	switch {
	case ok:
		l.ownLog, l.through, l.accountedSeq = src.checkpoint.Log, src.checkpoint.Through, checkpointSeq
	case src.resetLog != "":
		l.ownLog, l.through, l.accountedSeq = src.resetLog, src.resetThrough, src.access.Epoch.After
	case src.checkpoint.Epoch.IsZero():
		l.ownLog, l.through = src.checkpoint.Log, src.checkpoint.Through
		l.accountedSeq = src.access.Epoch.After
	default:
		l.accountedSeq = src.access.Epoch.After
	}
	events := src.inEpoch()
	for _, event := range events {
		if event.Seq > l.accountedSeq {
			l.ownLog, l.through, l.accountedSeq = event.OwnLog, event.Through, event.Seq
		}
	}
	if len(events) == 0 && src.lastSequence > l.accountedSeq && l.ownLog != "" {
		l.streamLastSeq, l.unaccounted = src.lastSequence, src.lastSequence-l.accountedSeq
	}
	l.retired = retire(src.checkpoint.Retired, src.checkpoint.Log, l.ownLog)
	l.logReset = src.missingLogReset()
	if src.released != nil && src.resetLog == "" && len(events) == 0 && !ok {
		former := src.resolveReleased(src.released)
		l.ownLog, l.through = former.ownLog, former.through
		l.retired, l.released = former.retired, former.released
		l.streamLastSeq, l.unaccounted = 0, 0
	}
	return l
}

// missingLogReset returns the reason of the hub.log_reset that the epoch must still begin with, ""
// if there is none to store. It is stored before every other event of the epoch and before the
// first checkpoint of the epoch.
func (src *sources) missingLogReset() domain.LogResetReason {
	epoch := src.access.Epoch
	if src.checkpoint.Epoch == epoch.ID {
		return ""
	}
	for _, event := range src.lastEvents {
		if event.EpochID == epoch.ID {
			return ""
		}
	}
	switch {
	case len(epoch.Former) > 0:
		return domain.LogResetRestored
	case src.resetLog != "":
		return domain.LogResetFactory
	}
	return "" // the hub was added
}

// resolveReleased returns the state of the log of a hub that the organization r.OrgID has released:
// the hub's own log, and the number through which that organization's log accounts for it. The
// state is released, so that the events that the hub still holds are skipped at its next hello. If
// a checkpoint was written after the release, while the hub had no organization, those events have
// been acknowledged since, and the checkpoint's state counts.
func (src *sources) resolveReleased(r *domain.ReleasedLog) logState {
	atRelease := sources{
		access:     domain.HubAccess{OrgID: r.OrgID, Epoch: r.Epoch},
		lastEvents: src.lastEvents, checkpoint: src.checkpoint,
		resetLog: r.OwnLog, resetThrough: r.OwnLogThrough,
	}
	former := atRelease.resolve()
	l := logState{
		lastEventSeq: former.lastEventSeq,
		ownLog:       former.ownLog,
		through:      former.through,
		retired:      former.retired,
		released:     true,
	}
	c := &src.checkpoint
	newer := (c.Log == former.ownLog && c.Through >= former.through) || slices.Contains(c.Retired, former.ownLog)
	if c.Epoch.IsZero() && (newer || former.ownLog == "") {
		l.ownLog, l.through, l.retired, l.released = c.Log, c.Through, c.Retired, false
	}
	return l
}
