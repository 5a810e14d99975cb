package orgfeed

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

const (
	// mergeLoads is how many logs a new merge looks into at once.
	mergeLoads = 8
	// mergeEvents is about how many events a merge holds while it is read.
	mergeEvents = 2048
	// maxChunk is the most events of one hub that a merge reads at once.
	maxChunk = 64
	// chunkBytes is about the most bytes of these events.
	chunkBytes = 64 << 10
)

// merge reads the events of many hubs between two positions, in the order of their times.
type merge struct {
	feed *Feed
	org  string
	// until are the times at which the merge ends, and complete is the Complete of the position
	// there.
	until    []int64
	complete int64
	// number is the number of the ring's first entry after the merge.
	number uint64
	// logs is a heap, by the time of the next event.
	logs []*mergedLog
}

// mergedLog is a log with events, or gaps, that are not read yet.
type mergedLog struct {
	backlog feed.Backlog
	group   int
	// after is the time of the last event that was read, and next of the next one.
	after, next int64
	// gaps come before the log's own events.
	gaps []gap
	// events begins with the log's next event, which has the sequence seq and the time at. It is
	// empty while the merge waits, and seq is 0 while that event is not known. number is the
	// event's number, also then.
	events      []domain.EncodedEvent
	seq, number uint64
	at          int64
}

// gap is an event feed.gap: events of the hub up to its time, nanoseconds since 1970, are gone for
// a reader at an earlier position. A reader at that time or later does not get it. So whether it
// comes depends on the position alone, and not on what the reader has got before.
type gap struct {
	at     int64
	reason string
}

// The reasons of feed.gap.
const (
	gapReset = "log_reset"
	gapLost  = "events_lost"
)

// newMerge returns the merge of an organization's hubs that the filter chooses, from a position to
// the end of the ring.
func (f *Feed) newMerge(ctx context.Context, r *ring, filter *domain.EventFilter, p Position) (*merge, error) {
	m := &merge{feed: f, org: r.org}
	m.until, m.complete, m.number = r.lastTimes()
	// A hub that was added before its events were stored must be among the organization's.
	if err := f.cfg.Hubs.Refresh(ctx); err != nil {
		return nil, unavailable(err)
	}
	hubs := slices.DeleteFunc(f.cfg.Hubs.HubsOf(r.org), func(hub domain.HubID) bool {
		access, ok := f.cfg.Hubs.Hub(hub)
		return !ok || !filter.HasHub(hub, access.SiteID)
	})
	logs := make([]*mergedLog, len(hubs))
	loads, loading := errgroup.WithContext(ctx)
	loads.SetLimit(mergeLoads)
	for i, hub := range hubs {
		group := f.cfg.Journal.GroupOfHub(hub)
		if f.cfg.Logs.LastStored(hub) <= p.Times[group] {
			continue
		}
		loads.Go(func() error {
			log := &mergedLog{group: group, after: p.Times[group]}
			more, err := m.open(loading, log, hub)
			if err == nil && more {
				more, err = m.fill(loading, log, 1)
			}
			if more {
				logs[i] = log
			}
			return err
		})
	}
	if err := loads.Wait(); err != nil {
		return nil, err
	}
	for _, log := range logs {
		if log != nil {
			m.logs = append(m.logs, log)
		}
	}
	for i := len(m.logs)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	m.rest()
	return m, nil
}

// open begins to read a hub's log after the time log.after. It returns false if the organization
// does not have the hub.
func (m *merge) open(ctx context.Context, log *mergedLog, hub domain.HubID) (bool, error) {
	backlog, err := m.feed.cfg.Logs.Backlog(ctx, m.org, hub, log.after)
	if errors.Is(err, feed.ErrReleased) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if access, ok := m.feed.cfg.Hubs.Hub(hub); !ok || access.OrgID != m.org {
		return false, nil
	}
	*log = mergedLog{backlog: backlog, group: log.group, after: log.after}
	if at := backlog.Former; at <= m.until[log.group] {
		log.addGap(at, gapReset)
	}
	return true, nil
}

// addGap adds a gap at a time, unless the reader is there or beyond.
func (log *mergedLog) addGap(at int64, reason string) {
	if at > log.after {
		log.gaps = append(log.gaps, gap{at, reason})
	}
}

// fill reads the next events of a log, and finds the gaps before them. It returns false if the
// merge has neither.
func (m *merge) fill(ctx context.Context, log *mergedLog, n int) (more bool, err error) {
	events, missing, err := log.backlog.Next(ctx, n, chunkBytes)
	for errors.Is(err, feed.ErrEpochEnded) {
		if more, err := m.open(ctx, log, log.backlog.Hub()); err != nil || !more {
			return false, err
		}
		events, missing, err = log.backlog.Next(ctx, n, chunkBytes)
	}
	if errors.Is(err, feed.ErrReleased) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	before := m.until[log.group]
	if len(events) > 0 && events[0].StoredNanos <= before {
		log.take(events)
		before = log.at - 1
	}
	if missing {
		log.addGap(before, gapLost)
	}
	return log.setNext(), nil
}

// take sets the log's next events.
func (log *mergedLog) take(events []domain.EncodedEvent) {
	next := &events[0]
	log.events, log.seq, log.number, log.at = events, next.Seq, next.Number, next.StoredNanos
}

// left returns how many events of the log are left.
func (log *mergedLog) left() uint64 {
	if log.number == 0 { // only gaps
		return 0
	}
	return log.backlog.LeftFrom(log.number)
}

// setNext sets the time of the next event. It returns false if none is known.
func (log *mergedLog) setNext() bool {
	switch {
	case len(log.gaps) > 0:
		log.next = log.gaps[0].at
	case log.seq > 0:
		log.next = log.at
	default:
		return false
	}
	return true
}

// event returns the next event, which peek has found. isGap reports that it is a feed.gap.
func (log *mergedLog) event() (e *domain.EncodedEvent, isGap bool, err error) {
	if len(log.gaps) == 0 {
		return &log.events[0], false, nil
	}
	marker, err := gapEvent(log.backlog.Hub(), log.backlog.Epoch(), log.gaps[0])
	return &marker, true, err
}

// chunk returns how many events of one log to read at once.
func (m *merge) chunk() int { return min(max(mergeEvents/max(len(m.logs), 1), 1), maxChunk) }

// peek returns the log with the next event, which it reads if necessary; nil at the end of the
// merge.
func (m *merge) peek(ctx context.Context) (*mergedLog, error) {
	for len(m.logs) > 0 {
		log := m.logs[0]
		if len(log.gaps) > 0 || len(log.events) > 0 {
			return log, nil
		}
		if log.seq > 0 {
			log.backlog.Unread(log.seq)
			log.seq = 0
		}
		more, err := m.fill(ctx, log, m.chunk())
		if err != nil {
			return nil, err
		}
		if !more {
			m.remove()
		} else if !m.isFirst() {
			m.down(0)
		}
	}
	return nil, nil
}

// advance steps over the event that peek has returned. A log whose next event is not known yet
// stays the first until peek has read it.
func (m *merge) advance() {
	log := m.logs[0]
	log.after = log.next
	if len(log.gaps) > 0 {
		log.gaps = log.gaps[1:]
	} else {
		log.events = log.events[1:]
		log.seq, log.number = 0, log.number+1
		switch {
		case len(log.events) > 0 && log.events[0].StoredNanos <= m.until[log.group]:
			log.take(log.events)
		case len(log.events) > 0 || log.backlog.AtEnd():
			m.remove()
			return
		}
	}
	if log.setNext() {
		m.down(0)
	}
}

// rest drops the events that the merge holds, which are read again when it goes on.
func (m *merge) rest() {
	for _, log := range m.logs {
		log.events = nil
	}
}

func (m *merge) remove() {
	last := len(m.logs) - 1
	m.logs[0] = m.logs[last]
	m.logs[last] = nil
	m.logs = m.logs[:last]
	m.down(0)
}

// isFirst reports whether the heap's root is in its place.
func (m *merge) isFirst() bool {
	return (len(m.logs) < 2 || m.logs[0].next <= m.logs[1].next) &&
		(len(m.logs) < 3 || m.logs[0].next <= m.logs[2].next)
}

// down moves an element of the heap down to its place.
func (m *merge) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(m.logs) && m.logs[child].next < m.logs[least].next {
				least = child
			}
		}
		if least == i {
			return
		}
		m.logs[i], m.logs[least] = m.logs[least], m.logs[i]
		i = least
	}
}
