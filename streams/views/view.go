package views

import (
	"time"

	"hubcloud/domain"
)

// keptRecords is the most records that are kept in memory for a view that is being repaired. Older
// ones are left to the journal.
const keptRecords = 256

// view is the stream of one hub's log. It is current, or somebody must look at it: before its first
// record, and after anything that went wrong. The fields below hub are guarded by shard.mu.
type view struct {
	shard *shard
	hub   domain.HubID

	// current reports that the stream is complete up to end, and that run and pending follow.
	current bool
	// end is the last sequence that is known to be in the stream, and endSince when that was last
	// known. A server that crashed since may have lost it.
	end      uint64
	endSince time.Time
	// pending are records to be sent, in order and without a gap: the newest ones that were added.
	pending []entry
	// run are the records on their way; nil for none.
	run *run
	// queued reports that the view is in shard.ready.
	queued bool

	// repairing reports that a repair is queued, under way, or to be tried again later, and
	// failures counts those that failed.
	repairing bool
	failures  int
	// behind reports that the view is known to lack records.
	behind bool
	// suspect is the first sequence from which the stream may have other messages than the journal;
	// 0 if only its last message may be another one.
	suspect uint64
	// awaySince is when the server of the stream was first found to be away; zero while it is not.
	awaySince time.Time
}

// run is a sequence of records of one view on its way to the broker. The broker answers the first
// and the last message. Every message is stored only if the one before it is the view's last, so
// the last answer proves the messages in between. The first answer proves that the first message
// was stored rather than one of somebody else, with the same sequence, before the run.
type run struct {
	view    *view
	token   uint64
	entries []entry
	bytes   int
	// answers counts the answers that are still to come.
	answers int
	sentAt  time.Time
}

func (r *run) first() uint64 { return r.entries[0].record.Seq }
func (r *run) last() uint64  { return r.entries[len(r.entries)-1].record.Seq }

// add takes the next record of a commit. The caller must hold shard.mu.
func (v *view) add(e entry) {
	seq := e.record.Seq
	if v.current {
		next := v.end + 1
		if v.run != nil {
			next = v.run.last() + 1
		}
		if n := len(v.pending); n > 0 {
			next = v.pending[n-1].record.Seq + 1
		}
		switch {
		case seq < next: // a repair has got it from the journal
			v.shard.queueForFeed(e)
			return
		case seq > next:
			v.fallBehind()
		}
	}
	if n := len(v.pending); !v.current &&
		(n >= keptRecords || n > 0 && v.pending[n-1].record.Seq+1 != seq) {
		v.drop()
	}
	v.pending = append(v.pending, e)
	if v.current {
		v.enqueue()
	} else {
		v.startRepair()
	}
}

// enqueue marks a current view that has records to send. The caller must hold shard.mu.
func (v *view) enqueue() {
	if v.current && v.run == nil && !v.queued && len(v.pending) > 0 {
		v.queued = true
		v.shard.ready = append(v.shard.ready, v)
		v.shard.signal()
	}
}

// drop leaves what waits in memory to a repair. The caller must hold shard.mu.
func (v *view) drop() {
	v.shard.queueForFeed(v.pending...)
	v.pending = nil
}

// fallBehind leaves the view to a repair. The caller must hold shard.mu.
func (v *view) fallBehind() {
	if v.run != nil {
		v.shard.forget(v.run)
		v.shard.queueForFeed(v.run.entries...)
		v.run = nil
	}
	v.drop()
	v.current = false
	v.startRepair()
}

// startRepair queues a repair of the view, unless there is one. The caller must hold shard.mu.
func (v *view) startRepair() {
	if !v.repairing {
		v.repairing = true
		v.shard.group.repairs.push(v)
	}
}

// becomeCurrent ends a repair: the stream is complete up to end, and the pending records after it
// follow. The caller must hold shard.mu.
func (v *view) becomeCurrent(end uint64) {
	n := 0
	for n < len(v.pending) && v.pending[n].record.Seq <= end {
		n++
	}
	v.shard.queueForFeed(v.pending[:n]...)
	v.pending = v.pending[n:]
	v.current, v.repairing, v.failures, v.suspect = true, false, 0, 0
	v.end, v.endSince = end, time.Now()
	v.setBehind(false)
	v.enqueue()
}

// setBehind records whether the view is known to lack records. The caller must hold shard.mu.
func (v *view) setBehind(behind bool) {
	if v.behind != behind {
		v.behind = behind
		count(behind, &v.shard.group.behind, v.shard.group.metrics.behind)
	}
}

// setAway records whether the server of the stream is away. The caller must hold shard.mu.
func (v *view) setAway(away bool) {
	if v.awaySince.IsZero() != away {
		return
	}
	v.awaySince = time.Time{}
	if away {
		v.awaySince = time.Now()
	}
	count(away, &v.shard.group.away, v.shard.group.metrics.away)
}
