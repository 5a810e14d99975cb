package orgfeed

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams/hublog"
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
	// number is that of the ring's first entry after the merge.
	number uint64
	// logs is a heap, by the time of the next event.
	logs []*mergedLog
	// gaps are the gaps to report before the next event.
	gaps []gap
}

// mergedLog is a log with events that are not read yet.
type mergedLog struct {
	backlog hublog.Backlog
	group   int
	// next is when the next event was stored, and seq its sequence.
	next int64
	seq  uint64
	// gap reports that events before the next one are gone.
	gap bool
	// events begins with the next event. It is empty while the merge waits.
	events []domain.EncodedEvent
}

// gap is a place of a hub's log where events are gone for a reader.
type gap struct {
	hub    domain.HubID
	epoch  domain.Epoch
	reason string
}

// The reasons of feed.gap.
const (
	gapReset   = "log_reset"
	gapExpired = "events_lost"
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
	logs, gaps := make([]*mergedLog, len(hubs)), make([]*gap, len(hubs))
	loads, loading := errgroup.WithContext(ctx)
	loads.SetLimit(mergeLoads)
	for i, hub := range hubs {
		group := f.cfg.Journal.GroupOfHub(hub)
		stored, err := f.cfg.Logs.LastStored(ctx, hub)
		if err != nil {
			loads.Wait()
			return nil, unavailable(err)
		}
		if stored <= p.Times[group] {
			continue
		}
		loads.Go(func() (err error) {
			logs[i], gaps[i], err = m.openLog(loading, hub, group, p.Times[group])
			return err
		})
	}
	if err := loads.Wait(); err != nil {
		return nil, err
	}
	for i := range hubs {
		if gaps[i] != nil {
			m.gaps = append(m.gaps, *gaps[i])
		}
		if logs[i] != nil {
			m.logs = append(m.logs, logs[i])
		}
	}
	for i := len(m.logs)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	m.rest()
	return m, nil
}

// openLog returns a hub's log after a time, nil if the merge has no event of it, and a gap at that
// place if there is one.
func (m *merge) openLog(
	ctx context.Context, hub domain.HubID, group int, after int64,
) (log *mergedLog, lost *gap, err error) {
	backlog, err := m.feed.cfg.Logs.Backlog(ctx, m.org, hub, after)
	if errors.Is(err, hublog.ErrReleased) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if backlog.Lost {
		lost = &gap{hub, backlog.Epoch(), gapReset}
	}
	log = &mergedLog{backlog: backlog, group: group}
	more, again, err := m.fill(ctx, log, 1)
	if err != nil || !more {
		if again != nil {
			lost = again
		}
		return nil, lost, err
	}
	return log, lost, nil
}

// fill reads the next events of a log. more is false if the merge has none; then lost is the gap to
// report, if there is one.
func (m *merge) fill(
	ctx context.Context, log *mergedLog, n int,
) (more bool, lost *gap, err error) {
	events, missing, err := log.backlog.Next(ctx, n, chunkBytes)
	switch {
	case errors.Is(err, hublog.ErrReleased):
		return false, nil, nil
	case errors.Is(err, hublog.ErrEpochEnded):
		// The rest of the former log is gone. The events of the new one come after this merge.
		access, ok := m.feed.cfg.Hubs.Hub(log.backlog.Hub())
		if !ok || access.OrgID != m.org {
			return false, nil, nil
		}
		return false, &gap{log.backlog.Hub(), access.Epoch, gapReset}, nil
	case err != nil:
		return false, nil, err
	}
	if missing {
		log.gap = true
	}
	if len(events) == 0 || events[0].StoredNanos > m.until[log.group] {
		if log.gap {
			lost = &gap{log.backlog.Hub(), log.backlog.Epoch(), gapExpired}
		}
		return false, lost, nil
	}
	log.events, log.next, log.seq = events, events[0].StoredNanos, events[0].Seq
	return true, nil, nil
}

// chunk returns how many events of one log to read at once.
func (m *merge) chunk() int { return min(max(mergeEvents/max(len(m.logs), 1), 1), maxChunk) }

// peek returns the log with the next event, which it reads if necessary; nil at the end of the
// merge. It returns a gap instead if one is to be reported first.
func (m *merge) peek(ctx context.Context) (log *mergedLog, lost *gap, err error) {
	for {
		if len(m.gaps) > 0 {
			return nil, &m.gaps[0], nil
		}
		if len(m.logs) == 0 {
			return nil, nil, nil
		}
		log = m.logs[0]
		if len(log.events) == 0 {
			if log.seq > 0 {
				log.backlog.Unread(log.seq)
			}
			more, lost, err := m.fill(ctx, log, m.chunk())
			if err != nil {
				return nil, nil, err
			}
			if !more {
				m.remove()
				if lost != nil {
					m.gaps = append(m.gaps, *lost)
				}
				continue
			}
			if m.logs[0] = log; !m.isFirst() {
				m.down(0)
				continue
			}
		}
		if log.gap {
			log.gap = false
			m.gaps = append(m.gaps, gap{log.backlog.Hub(), log.backlog.Epoch(), gapExpired})
			continue
		}
		return log, nil, nil
	}
}

// advance steps over the event that peek has returned. A log whose next event is not known yet
// stays the first until peek has read it.
func (m *merge) advance() {
	log := m.logs[0]
	log.events = log.events[1:]
	switch {
	case len(log.events) > 0 && log.events[0].StoredNanos <= m.until[log.group]:
		log.next, log.seq = log.events[0].StoredNanos, log.events[0].Seq
		m.down(0)
	case len(log.events) > 0 || log.backlog.AtEnd():
		m.remove()
	default:
		log.events, log.seq = nil, 0
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
