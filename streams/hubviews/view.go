package hubviews

import (
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

// viewState is what is known of a view, and who works on it.
type viewState uint8

const (
	// stateNew views have had no record yet.
	stateNew viewState = iota
	// statePreparing views have records, and wait until their stream has been looked at.
	statePreparing
	// stateCurrent views are complete up to end. Their records are in pending and run.
	stateCurrent
	// stateBehind views lack records that are not in the backlog, or may lack some. A repair gets
	// them from the journal.
	stateBehind
)

// view is the stream of one hub's log. The fields below hub are guarded by shard.mu.
type view struct {
	shard *shard
	hub   domain.HubID

	state viewState
	// queued reports that the view is in shard.ready.
	queued bool
	// keeping reports, for a view that is behind, that pending has every record after the goal of
	// the repair that is under way. Otherwise its pending is empty.
	keeping bool
	// goal is the sequence up to which the repair that is under way goes, while keeping is set.
	goal uint64
	// suspect is the first sequence from which the view may have other messages than the journal; 0
	// if only its last message may be another one.
	suspect uint64
	// damaged reports that the stream must be written anew.
	damaged bool
	// repairing reports that a repair is queued, under way, or to be tried again later.
	repairing bool
	// salvaged are the messages up to the sequence before salvagedEnd that a rebuild has read and
	// that may not be in the stream any more, until one has stored them all.
	salvaged    []*nats.Msg
	salvagedEnd uint64
	// failures counts the repairs that failed since the last one that did not.
	failures int
	// awaySince is when the server of the stream was first found to be away; zero while it is not.
	awaySince time.Time

	// end is the last sequence that is known to be in the view, while the view is current, and
	// endSince when that was last known. A server that crashed since may have lost it.
	end      uint64
	endSince time.Time
	// added is the last sequence passed to Add; 0 for none.
	added uint64
	// pending are records to be sent, in order and without a gap.
	pending []entry
	// preparingSince is when the view began to wait for its preparation.
	preparingSince time.Time
	// run are the records on their way; nil for none.
	run     *run
	waiters []waiter
}

// waiter waits until a view has a sequence.
type waiter struct {
	seq  uint64
	done chan struct{}
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

// add takes a record of a commit. The caller must hold shard.mu. It reports whether the view is to
// be prepared.
func (v *view) add(e entry, now time.Time) (prepare bool) {
	seq := e.record.Seq
	s := v.shard
	if seq <= v.added {
		s.views.backlog.done(e.commit, 1) // added before
		return false
	}
	if v.added > 0 && seq > v.added+1 && v.state != stateBehind {
		v.fallBehind(e.commit.Seq)
	}
	v.added = seq
	switch {
	case v.state == stateBehind && !v.keeping:
		s.views.backlog.lacks(v, e.commit.Seq)
		s.views.settle(e)
		return false
	case v.state == stateNew:
		v.state, v.preparingSince = statePreparing, now
		s.preparing = append(s.preparing, v)
		prepare = true
	}
	v.pending = append(v.pending, e)
	v.enqueue()
	return prepare
}

// enqueue marks a current view that has records to send. The caller must hold shard.mu.
func (v *view) enqueue() {
	if v.state == stateCurrent && v.run == nil && !v.queued && len(v.pending) > 0 {
		v.queued = true
		v.shard.ready = append(v.shard.ready, v)
		v.shard.signal()
	}
}

// fallBehind leaves all records of the view to a repair. commit is the first commit of which the
// view may lack records; noCommit for none but those of the records that are dropped. The caller
// must hold shard.mu.
func (v *view) fallBehind(commit uint64) {
	b := &v.shard.views.backlog
	drop := v.pending
	if v.run != nil {
		v.shard.forget(v.run)
		drop = append(v.run.entries[:len(v.run.entries):len(v.run.entries)], drop...)
		v.run = nil
	}
	if len(drop) > 0 {
		commit = min(commit, drop[0].commit.Seq)
	}
	b.lacks(v, commit)
	v.shard.views.settle(drop...)
	v.state, v.pending, v.keeping = stateBehind, nil, false
	v.shard.views.startRepair(v)
}

// becomeCurrent records that the view is complete up to end and that pending follows on end. The
// caller must hold shard.mu.
func (v *view) becomeCurrent(end uint64) {
	v.state, v.keeping, v.failures, v.suspect = stateCurrent, false, 0, 0
	v.advance(end)
	v.shard.views.backlog.complete(v)
	v.enqueue()
}

// advance moves the end and wakes those who wait for it. The caller must hold shard.mu.
func (v *view) advance(end uint64) {
	v.end, v.endSince = end, time.Now()
	waiting := v.waiters[:0]
	for _, w := range v.waiters {
		if w.seq <= end {
			close(w.done)
		} else {
			waiting = append(waiting, w)
		}
	}
	clear(v.waiters[len(waiting):])
	v.waiters = waiting
	if len(waiting) == 0 {
		v.waiters = nil
	}
}

// removeWaiter removes one of those who wait. The caller must hold shard.mu.
func (v *view) removeWaiter(done chan struct{}) {
	v.waiters = slices.DeleteFunc(v.waiters, func(w waiter) bool { return w.done == done })
}
