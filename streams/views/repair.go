package views

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
	// pipelined is how many messages of a repair are on their way at once.
	pipelined = 256
	// readBytes bounds the payloads of one read of the journal.
	readBytes = 1 << 20
	// firstRetry is the pause before a repair that failed is tried again. It doubles up to
	// lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// missing is the damage of a stream that does not exist.
	missing = "missing"
	// conflictTries is how often a repair begins again at once when the stream has changed since it
	// looked.
	conflictTries = 3
)

// retryNow repeats a failed repair at once.
func (g *group) retryNow(v *view) {
	g.mu.Lock()
	_, waiting := g.retries[v]
	delete(g.retries, v)
	g.mu.Unlock()
	if waiting {
		g.repairs.push(v)
	}
}

// retryDue repeats the failed repairs that are due.
func (g *group) retryDue(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for v, at := range g.retries {
		if !at.After(now) {
			delete(g.retries, v)
			g.repairs.push(v)
		}
	}
}

func (g *group) runRepairs(ctx context.Context) error {
	for {
		v, ok := g.repairs.next(ctx)
		if !ok {
			return nil
		}
		err := v.shard.repair(ctx, v)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			g.metrics.repairs.Inc()
			continue
		}
		g.logFailure(v, "hub log not repaired", err)
		g.retryLater(v)
	}
}

// retryLater schedules the next try of a repair that failed.
func (g *group) retryLater(v *view) {
	v.shard.mu.Lock()
	v.drop()
	v.setBehind(true)
	pause := min(firstRetry<<min(v.failures, 10), lastRetry)
	v.failures++
	if !v.awaySince.IsZero() {
		// Until then nothing can be done, except if an audit finds the stream again.
		pause = max(time.Until(v.awaySince.Add(g.cfg.AwayDelay)), pause)
	}
	v.shard.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retries[v] = time.Now().Add(pause)
}

// repair makes a view current: it looks at the stream, deletes what is not the journal's log, and
// appends what is missing.
func (s *shard) repair(ctx context.Context, v *view) error {
	for try := 1; ; try++ {
		err := s.repairOnce(ctx, v)
		if !errors.Is(err, jsapi.ErrConflict) || try == conflictTries {
			return err // otherwise the stream has changed meanwhile
		}
	}
}

func (s *shard) repairOnce(ctx context.Context, v *view) error {
	r := &repair{shard: s, view: v, msg: newMessage(), base: s.group.cfg.Now()}
	s.mu.Lock()
	r.suspect = v.suspect
	r.isNew = len(v.pending) > 0 && v.pending[0].record.Seq == 1
	s.mu.Unlock()
	end, damage, err := r.inspect(ctx)
	if err == nil && damage != "" {
		end, err = r.reset(ctx, damage)
	}
	for err == nil {
		goal := r.next(end)
		if goal == end {
			return nil
		}
		end, err = r.extend(ctx, end, goal)
		if errors.Is(err, journal.ErrGone) && damage == "" {
			damage = "older than the journal"
			end, err = r.reset(ctx, damage)
		}
	}
	return err
}

// repair is one try to make a view current.
type repair struct {
	*shard
	view *view
	msg  *message
	// base is when the repair began, which all lifetimes are measured from: messages expire in
	// their order.
	base time.Time
	// suspect is the view's.
	suspect uint64
	// releasedTo is where the log of a released hub ended when it was looked at: nothing up to there
	// is kept. It is 0 for other hubs.
	releasedTo uint64
	// isNew reports that the first record of the log waits in memory.
	isNew bool
	// ttlAllowed is set once the stream is known to accept messages with a lifetime.
	ttlAllowed bool
}

// next returns the sequence up to which the stream is to be extended from end. It is end once
// nothing is missing but what waits in memory: the view is current then.
func (r *repair) next(end uint64) (goal uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	goal = max(r.tip().Seq, end)
	if len(r.view.pending) > 0 {
		goal = max(min(goal, r.view.pending[0].record.Seq-1), end)
	}
	if goal == end {
		r.view.becomeCurrent(end)
	} else {
		r.view.setBehind(true)
	}
	return goal
}

// tip returns the end of the hub's log.
func (r *repair) tip() journal.Tip {
	tip, _ := r.group.cfg.Journal.Tip(r.view.hub)
	return tip
}

// reset deletes the stream and creates it anew, for the records of the journal that have not
// expired.
func (r *repair) reset(ctx context.Context, damage string) (end uint64, err error) {
	hub, last := r.view.hub, r.tip().Seq
	if damage == missing && r.isNew {
		return 0, r.create(ctx, hub, 0)
	}
	cfg := &r.group.cfg
	first, err := cfg.Journal.Oldest(ctx, hub, r.base.Add(-cfg.Retention))
	if errors.Is(err, journal.ErrGone) {
		first, err = last+1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	first = max(first, r.releasedTo+1)
	cfg.Logger.Info(
		"hub log written again from the journal", "hub_id", hub, "reason", damage, "first", first,
		"last", last,
	)
	r.group.metrics.rebuilds.Inc()
	r.group.step("delete")
	if err := r.api.Delete(ctx, streams.HubStream(hub)); err != nil {
		return 0, err
	}
	r.ttlAllowed = false
	return first - 1, r.create(ctx, hub, first)
}

// inspect returns the end of the stream and, if the stream must be written anew, why.
func (r *repair) inspect(ctx context.Context) (end uint64, damage string, err error) {
	r.group.step("inspect")
	info, err := r.open(ctx, r.view.hub)
	switch {
	case errors.Is(err, jsapi.ErrOffline):
		// Its server may come back, and then the view has what it had.
		r.mu.Lock()
		r.view.setAway(true)
		since := r.view.awaySince
		r.mu.Unlock()
		if time.Since(since) < r.group.cfg.AwayDelay {
			return 0, "", err
		}
		return 0, "its server is away", nil
	case err != nil && !errors.Is(err, jsapi.ErrNoStream):
		return 0, "", err
	}
	r.mu.Lock()
	r.view.setAway(false)
	r.mu.Unlock()
	switch {
	case err != nil:
		return 0, missing, nil
	case r.group.isTooLong(r.view.hub, info.State.LastSeq):
		return 0, "longer than the journal", r.group.cut(ctx, r.api, r.view.hub)
	}
	for _, check := range []func(context.Context, *jetstream.StreamInfo) (string, error){
		r.checkReleased, r.checkMiddle, r.checkFront, r.checkEnd,
	} {
		if damage, err = check(ctx, info); damage != "" || err != nil {
			return 0, damage, err
		}
	}
	return info.State.LastSeq, "", nil
}

// checkReleased looks for messages of a hub that was released.
func (r *repair) checkReleased(
	ctx context.Context, info *jetstream.StreamInfo,
) (string, error) {
	end := r.tip().Seq // first: what the next organization's hub records is kept
	released, err := r.group.cfg.IsReleased(ctx, r.view.hub)
	if err != nil || !released || info.State.Msgs == 0 {
		return "", err
	}
	r.releasedTo = end
	return "released", nil
}

// checkMiddle looks for messages that are missing between others.
func (r *repair) checkMiddle(ctx context.Context, info *jetstream.StreamInfo) (string, error) {
	if info.State.NumDeleted == 0 {
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
func (r *repair) checkFront(ctx context.Context, info *jetstream.StreamInfo) (string, error) {
	if !lacksFront(info, r.base, r.base, r.group.cfg.Retention) {
		return "", nil
	}
	lost, err := r.lost(ctx, info.State.FirstSeq-1)
	if !lost {
		return "", err
	}
	return "lacks its front", nil
}

// lost reports whether the journal has a record that the view lacks and that has not expired.
func (r *repair) lost(ctx context.Context, seq uint64) (bool, error) {
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

// checkEnd compares the last message of the stream with the journal, and those that are suspect.
func (r *repair) checkEnd(ctx context.Context, info *jetstream.StreamInfo) (string, error) {
	state := &info.State
	last := state.LastSeq
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
	records, err := r.group.cfg.Journal.Records(ctx, r.view.hub, from, to, readBytes)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", r.view.hub, err)
	}
	return records, nil
}

// lifetime returns how long a record is to be kept from r.base on.
func (r *repair) lifetime(written time.Time) time.Duration {
	return r.group.cfg.Retention - r.base.Sub(written)
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
		r.group.step("extend")
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
		r.group.metrics.written.Add(float64(len(records)))
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
	retention := r.group.cfg.Retention
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
