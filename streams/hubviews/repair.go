package hubviews

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

const (
	// keptRecords is the most records that a repair may lack when it ends by having the next ones
	// kept in memory for the view. Before, they are left to the journal.
	keptRecords = 256
	// pipelined is how many messages of a repair are on their way at once.
	pipelined = 256
	// readBytes bounds the payloads of one read of the journal.
	readBytes = 1 << 20
	// firstRetry is the pause before a repair that failed is tried again. It doubles up to
	// lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// conflictTries is how often a repair begins again at once when the stream has changed since it
	// looked.
	conflictTries = 3
)

// errChanged begins a repair again: the stream has changed, or is to be written anew.
var errChanged = errors.New("the stream has changed during its repair")

// startRepair queues the repair of a view that is behind, unless it is queued. The caller must hold
// the lock of its shard.
func (v *Views) startRepair(w *view) {
	if !w.repairing {
		w.repairing = true
		v.repairs.push(w)
	}
}

// retryNow repeats a failed repair at once.
func (v *Views) retryNow(w *view) {
	v.mu.Lock()
	_, waiting := v.retries[w]
	delete(v.retries, w)
	v.mu.Unlock()
	if waiting {
		v.repairs.push(w)
	}
}

// retryDue repeats the failed repairs that are due.
func (v *Views) retryDue(now time.Time) {
	v.mu.Lock()
	var due []*view
	for w, at := range v.retries {
		if !at.After(now) {
			due = append(due, w)
			delete(v.retries, w)
		}
	}
	v.mu.Unlock()
	for _, w := range due {
		v.repairs.push(w)
	}
}

func (v *Views) runRepairs(ctx context.Context) error {
	for {
		w, ok := v.repairs.next(ctx)
		if !ok {
			return nil
		}
		err := w.shard.repair(ctx, w)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			v.cfg.Metrics.repairs.Inc()
			continue
		}
		v.logFailure(w, "hub log not repaired", err)
		v.retryLater(w)
	}
}

// retryLater schedules the next try of a repair that failed.
func (v *Views) retryLater(w *view) {
	w.shard.mu.Lock()
	w.fallBehind(noCommit) // drops what was kept for the end of the repair
	pause := min(firstRetry<<min(w.failures, 10), lastRetry)
	w.failures++
	if !w.awaySince.IsZero() {
		// Until then nothing can be done, except if an audit finds the stream again.
		pause = max(time.Until(w.awaySince.Add(v.cfg.AwayDelay)), pause)
	}
	w.shard.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.retries[w] = time.Now().Add(pause)
}

// repair makes a view complete that is behind, and current.
func (s *shard) repair(ctx context.Context, w *view) error {
	for try := 1; ; try++ {
		err := s.repairOnce(ctx, w)
		if again := errors.Is(err, errChanged) || errors.Is(err, jsapi.ErrConflict); !again ||
			try == conflictTries {
			return err
		}
		s.mu.Lock()
		w.fallBehind(noCommit)
		s.mu.Unlock()
	}
}

func (s *shard) repairOnce(ctx context.Context, w *view) error {
	r := &repair{shard: s, view: w, msg: newMessage(), base: s.views.cfg.Now()}
	tip, _ := s.views.cfg.Index.Tip(w.hub)
	s.mu.Lock()
	r.known, r.damaged, r.suspect = max(w.added, tip.Seq), w.damaged, w.suspect
	s.mu.Unlock()
	end, damage, err := r.inspect(ctx)
	if err == nil && damage != "" {
		end, err = r.rebuild(ctx, damage)
	}
	if err != nil {
		return err
	}
	for rebuilt := damage != ""; ; {
		goal, err := r.next(end)
		if err != nil || goal == 0 {
			return err
		}
		end, err = r.extend(ctx, end, goal)
		if errors.Is(err, journal.ErrGone) && !rebuilt {
			rebuilt = true
			end, err = r.rebuild(ctx, "older than the journal")
		}
		if err != nil {
			return err
		}
	}
}

// repair is one try to make a view complete.
type repair struct {
	*shard
	view *view
	msg  *message
	// base is when the repair began, which all lifetimes are measured from: messages expire in
	// their order.
	base time.Time
	// known is the last sequence that the journal was known to have when the repair began; 0 for
	// none.
	known uint64
	// away reports that the stream is left, because its server has been away for too long.
	away bool
	// damaged and suspect are those of the view.
	damaged bool
	suspect uint64
	// ttlAllowed is set once the stream is known to accept messages with a lifetime.
	ttlAllowed bool
}

// next returns the sequence up to which the view is to be extended from end. Once little is
// missing, the records after it are kept in memory meanwhile. When nothing is missing, the view is
// current and next returns 0.
func (r *repair) next(end uint64) (goal uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.view
	if w.damaged {
		return 0, errChanged
	}
	if !w.keeping {
		w.goal = max(w.added, r.known)
		w.keeping = w.goal <= end+keptRecords
	}
	if w.keeping && w.goal <= end {
		w.repairing = false
		w.becomeCurrent(end)
		return 0, nil
	}
	return w.goal, nil
}

// inspect returns the end of the view and, if the stream must be written anew, why.
func (r *repair) inspect(ctx context.Context) (end uint64, damage string, err error) {
	r.views.step("inspect")
	info, err := r.open(ctx, r.view.hub)
	switch {
	case errors.Is(err, jsapi.ErrNoStream):
		r.shard.setAway(r.view, false)
		return 0, "missing", nil
	case errors.Is(err, jsapi.ErrOffline):
		if r.away, err = r.abandon(ctx, err); err != nil {
			return 0, "", err
		}
		return 0, "its server is away", nil
	case err != nil:
		return 0, "", err
	}
	r.shard.setAway(r.view, false)
	state := info.State
	if damage, err = r.checkLength(ctx, state); damage != "" || err != nil {
		return 0, damage, err
	}
	if r.damaged {
		return 0, "requested", nil
	}
	for _, check := range []func(context.Context, jetstream.StreamState) (string, error){
		r.checkMiddle, r.checkFront, r.checkEnd,
	} {
		if damage, err = check(ctx, state); damage != "" || err != nil {
			return 0, damage, err
		}
	}
	return state.LastSeq, "", nil
}

// checkLength looks for messages after the log's last record in the journal. The journal has lost
// their records, and decides: the view must not have them when their sequences are given out again.
func (r *repair) checkLength(
	ctx context.Context, state jetstream.StreamState,
) (damage string, err error) {
	tip, ok := r.views.cfg.Index.Tip(r.view.hub)
	if r.known = max(r.known, tip.Seq); !ok || state.LastSeq <= r.known {
		return "", nil
	}
	r.views.cfg.Logger.Warn(
		"the journal has lost the end of a hub log; the log begins a new epoch", "hub_id", r.view.hub,
		"kept", r.known, "lost", state.LastSeq,
	)
	return "longer than the journal", r.views.cfg.LogLostEnd(ctx, r.view.hub, r.known)
}

// checkMiddle looks for messages that are missing between others.
func (r *repair) checkMiddle(ctx context.Context, state jetstream.StreamState) (string, error) {
	if state.NumDeleted == 0 {
		return "", nil
	}
	deleted, err := r.api.Deleted(ctx, streams.HubStream(r.view.hub))
	if err != nil || len(deleted) == 0 {
		return "", err
	}
	lost, err := r.lost(ctx, deleted[len(deleted)-1])
	if !lost {
		return "", err
	}
	return "has a gap", nil
}

// checkFront looks for messages that are missing before the first.
func (r *repair) checkFront(ctx context.Context, state jetstream.StreamState) (string, error) {
	if !r.lacksFront(&state, r.base) {
		return "", nil
	}
	lost, err := r.lost(ctx, state.FirstSeq-1)
	if !lost {
		return "", err
	}
	return "lacks its front", nil
}

// lost reports whether the journal has a record that the view lacks and that has not expired.
func (r *repair) lost(ctx context.Context, seq uint64) (bool, error) {
	if seq > r.known {
		return false, nil
	}
	records, err := r.records(ctx, seq, seq)
	if errors.Is(err, journal.ErrGone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Two clocks may have measured, and expired messages are removed in intervals.
	return r.lifetime(records[0].Time) > 5*time.Second, nil
}

// checkEnd compares the last messages of the view with the journal: the last one that the journal
// can have and those that are suspect.
func (r *repair) checkEnd(ctx context.Context, state jetstream.StreamState) (string, error) {
	last := min(state.LastSeq, r.known)
	seq := last
	if r.suspect > 0 {
		seq = min(seq, r.suspect)
	}
	for seq = max(seq, state.FirstSeq); seq <= last && state.Msgs > 0; {
		records, err := r.records(ctx, seq, last)
		if errors.Is(err, journal.ErrGone) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for i := range records {
			if records[i].StandIn {
				continue // the view may have what the journal has lost
			}
			stored, err := r.api.Get(ctx, streams.HubStream(r.view.hub), records[i].Seq)
			switch {
			case errors.Is(err, jsapi.ErrNotFound): // expired meanwhile
			case err != nil:
				return "", err
			case !r.msg.has(stored, &records[i]):
				return "has another message than the journal", nil
			}
		}
		seq += uint64(len(records))
	}
	return "", nil
}

// records returns the hub's records in the journal with the sequences from to to, or the first ones
// of them, at least one. The error is journal.ErrGone if the journal does not have the first one
// any more.
func (r *repair) records(ctx context.Context, from, to uint64) ([]journal.Record, error) {
	tip, ok := r.views.cfg.Index.Tip(r.view.hub)
	if ok && from > tip.Seq {
		return nil, fmt.Errorf(
			"hub log of %s: the index ends at %d: must have %d", r.view.hub, tip.Seq, from,
		)
	}
	records, err := r.views.cfg.Reader.Read(ctx, r.view.hub, tip, from, to, readBytes)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", r.view.hub, err)
	}
	return records, nil
}

// lifetime returns how long a record is to be kept from r.base on.
func (r *repair) lifetime(written time.Time) time.Duration {
	return r.views.cfg.Retention - r.base.Sub(written)
}

// extend appends the journal's records after end up to goal to the view.
func (r *repair) extend(ctx context.Context, end, goal uint64) (uint64, error) {
	out, err := jsapi.NewPipeline(r.nc, pipelined)
	if err != nil {
		return end, err
	}
	defer out.Close()
	last := end
	for last < goal {
		r.views.step("extend")
		records, err := r.records(ctx, last+1, goal)
		if err != nil {
			return end, err
		}
		for i := range records {
			record := &records[i]
			if record.Seq != last+1 {
				return end, fmt.Errorf(
					"hub log of %s: the journal returned %d after %d", r.view.hub, record.Seq, last,
				)
			}
			r.msg.set(record)
			if left := r.lifetime(record.Time); r.isLate(left) {
				if err := r.allowTTL(ctx); err != nil {
					return end, err
				}
				jsapi.ExpireAfter(&r.msg.Msg, left)
			}
			jsapi.ExpectEnd(&r.msg.Msg, last)
			if err := out.Send(ctx, &r.msg.Msg); err != nil {
				return end, err
			}
			last++
		}
		r.views.cfg.Metrics.written.Add(float64(len(records)))
	}
	if err := out.Wait(ctx); err != nil {
		return end, err
	}
	return last, nil
}

// fresh is how late a message may expire, or a hundredth of the retention if that is longer.
const fresh = 10 * time.Second

// isLate reports whether a message with that much of its lifetime left must be stored with it.
func (r *repair) isLate(left time.Duration) bool {
	retention := r.views.cfg.Retention
	return left < retention-max(fresh, retention/100)
}

// allowTTL makes the view's stream accept messages with a lifetime.
func (r *repair) allowTTL(ctx context.Context) error {
	if r.ttlAllowed {
		return nil
	}
	err := r.shard.allowTTL(ctx, r.view.hub)
	r.ttlAllowed = err == nil
	return err
}
