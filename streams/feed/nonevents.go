package feed

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

const (
	// maxNonEventLogs is how many logs nonEvents knows, and maxNonEvents how many records of all of
	// them together: about 20 MiB.
	maxNonEventLogs = 20_000
	maxNonEvents    = 2_000_000
	// maxLoadedNonEvents is how many records of one log are loaded, oldest first.
	maxLoadedNonEvents = 16 * maxGet
	// nonEventsPatience bounds a load. After a failed one the log is not loaded for nonEventsPause.
	nonEventsPatience = time.Second
	nonEventsPause    = 10 * time.Second
)

// nonEvents holds the sequences of commands and states, so that events can be counted. A log is
// loaded when it is first asked for, with one filtered read of the hub's stream, and then kept up
// to date by what the journal delivers.
type nonEvents struct {
	// used reports that there is a log.
	used atomic.Bool

	mu    sync.Mutex
	logs  map[domain.HubID]*nonEventLog
	total int
}

// nonEventLog is what nonEvents knows of one log. Its fields are guarded by nonEvents.mu.
type nonEventLog struct {
	// through is the end of the log when it was first asked for: what follows is received.
	through uint64
	// seqs are the sequences, ascending. Those up to through are there once loaded is set.
	seqs   []uint64
	loaded bool
	// loading is closed at the end of the load under way; nil if there is none.
	loading chan struct{}
	// failed is when the last load failed.
	failed time.Time
}

// received adds the records of one hub.
func (n *nonEvents) received(records []journal.Record) {
	if !n.used.Load() || !slices.ContainsFunc(records, isNoEvent) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	log := n.logs[records[0].Hub]
	if log == nil {
		return
	}
	for i := range records {
		r := &records[i]
		if isNoEvent(*r) && r.Seq > log.through &&
			(len(log.seqs) == 0 || r.Seq > log.seqs[len(log.seqs)-1]) {
			log.seqs = append(log.seqs, r.Seq)
			n.total++
		}
	}
	n.trimLocked(log)
}

func isNoEvent(r journal.Record) bool { return !r.Kind.IsEvent() }

// trimLocked drops logs while there are too many. The caller must hold n.mu.
func (n *nonEvents) trimLocked(keep *nonEventLog) {
	for hub, log := range n.logs {
		if len(n.logs) <= maxNonEventLogs && n.total <= maxNonEvents {
			return
		}
		if log != keep {
			n.total -= len(log.seqs)
			delete(n.logs, hub)
		}
	}
}

// count returns how many records after the sequence after, up to to, are known not to be events.
func (n *nonEvents) count(hub domain.HubID, after, to uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	log := n.logs[hub]
	if log == nil {
		return 0
	}
	first, _ := slices.BinarySearch(log.seqs, after+1)
	end, _ := slices.BinarySearch(log.seqs, to+1)
	return uint64(max(end-first, 0))
}

// loadNonEvents makes nonEvents know a log. Without success, records of commands and states count
// as events: callers need no error.
func (l *Logs) loadNonEvents(ctx context.Context, hub domain.HubID) {
	ctx, cancel := context.WithTimeout(ctx, nonEventsPatience)
	defer cancel()
	log, wait := l.nonEvents.begin(hub)
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	if log == nil {
		return
	}
	end, err := l.knownEnd(ctx, hub)
	var seqs []uint64
	if err == nil {
		l.nonEvents.start(log, end.last)
		seqs, err = l.readNonEvents(ctx, hub, end.last)
	}
	l.nonEvents.finish(log, seqs, err)
}

// begin returns the log if the caller must load it, or a channel that is closed at the end of the
// load under way. Both are nil if the log is loaded or cannot be loaded now.
func (n *nonEvents) begin(hub domain.HubID) (mine *nonEventLog, wait <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	log := n.logs[hub]
	if log == nil {
		log = &nonEventLog{}
		if n.logs == nil {
			n.logs = map[domain.HubID]*nonEventLog{}
		}
		n.logs[hub] = log
		n.used.Store(true)
		n.trimLocked(log)
	}
	switch {
	case log.loaded, time.Since(log.failed) < nonEventsPause:
		return nil, nil
	case log.loading != nil:
		return nil, log.loading
	}
	log.loading = make(chan struct{})
	return log, nil
}

// start sets the end of a log before it is loaded. What was received until now is loaded as well.
func (n *nonEvents) start(log *nonEventLog, through uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	log.through = through
	after, _ := slices.BinarySearch(log.seqs, through+1)
	n.total -= after
	log.seqs = slices.Clone(log.seqs[after:])
}

// finish ends a load.
func (n *nonEvents) finish(log *nonEventLog, seqs []uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		log.failed = time.Now()
	} else {
		log.seqs, log.loaded = append(seqs, log.seqs...), true
		n.total += len(seqs)
	}
	close(log.loading)
	log.loading = nil
}

// readNonEvents reads the sequences of the records of commands and states up to a sequence.
func (l *Logs) readNonEvents(
	ctx context.Context, hub domain.HubID, to uint64,
) (seqs []uint64, err error) {
	if l.cfg.Journal != nil {
		if _, ok := l.cfg.Journal.Tip(hub); ok {
			if err := l.cfg.Journal.AwaitView(ctx, hub, to); err != nil {
				return nil, err
			}
		}
	}
	request := jsapi.BatchRequest{
		Filter: streams.CommandSubject(hub), Messages: maxGet, Bytes: maxGetBytes,
	}
	for len(seqs) < maxLoadedNonEvents {
		found, err := l.shard(hub).get(ctx, hub, request)
		if err != nil || len(found) == 0 {
			return seqs, err
		}
		for _, m := range found {
			if m.seq > to {
				return seqs, nil
			}
			seqs = append(seqs, m.seq)
		}
		request.From = found[len(found)-1].seq + 1
	}
	return seqs, nil
}

// eventsAfter returns how many events of a log are after a sequence, up to another, as far as
// nonEvents knows.
func (l *Logs) eventsAfter(hub domain.HubID, after, to uint64) uint64 {
	if after >= to {
		return 0
	}
	return to - after - min(l.nonEvents.count(hub, after, to), to-after)
}
