package logwriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hubviews"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// Router appends to the logs of all hubs, whichever replica writes them. All methods may be called
// at any time, from any goroutine.
type Router struct {
	cfg         Config
	journals    *journal.Journal
	groups      []*group
	viewMetrics *hubviews.Metrics

	// subscribers get every commit. The slice is replaced, never changed.
	subscribeMu sync.Mutex
	subscribers atomic.Pointer[[]func(group int, commits []journal.Commit)]
}

// group is the shards that share a journal.
type group struct {
	number   int
	follower *journal.Follower
	index    *journal.Index
	reader   *journal.Reader
	// ended has the epoch of each log that has ended because the journal had lost the log's end.
	ended sync.Map
	// writer is nil while this process does not serve the group.
	writer atomic.Pointer[writer]
}

// Subscribe makes the router call f with all later commits of each journal, in order, each once and
// after it is durable. f must not block.
func (r *Router) Subscribe(f func(group int, commits []journal.Commit)) {
	r.subscribeMu.Lock()
	defer r.subscribeMu.Unlock()
	all := append(slices.Clone(*r.subscribers.Load()), f)
	r.subscribers.Store(&all)
}

// Groups returns the number of groups.
func (r *Router) Groups() int { return len(r.groups) }

// GroupOf returns the group of a shard.
func (r *Router) GroupOf(shard int) int { return shard % len(r.groups) }

// GroupOfHub returns the group of a hub.
func (r *Router) GroupOfHub(hub domain.HubID) int { return r.groupOf(hub).number }

func (r *Router) shardOf(hub domain.HubID) int {
	return streams.ShardOf(hub, len(r.cfg.Conns.Shards))
}

func (r *Router) groupOf(hub domain.HubID) *group { return r.groups[r.GroupOf(r.shardOf(hub))] }

// Run follows the journals, and saves from time to time where each hub's log ends, until ctx ends.
// It returns nil then.
func (r *Router) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, g := range r.groups {
		running.Go(func() error {
			if err := g.follower.Run(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			return nil
		})
		running.Go(func() error {
			return r.journals.RunSnapshots(ctx, g.index, func() bool { return g.writer.Load() != nil })
		})
	}
	return running.Wait()
}

// Serve writes the journal and the views of a group until ctx ends, and stores what waits before it
// returns. The caller must hold the group's lease: held reports whether it does at that moment.
// Serve calls ready each time the group can be appended to. After an error it begins again.
func (r *Router) Serve(
	ctx context.Context, number int, held func() bool, ready func(),
) error {
	g := r.groups[number]
	for ctx.Err() == nil {
		err := r.serveOnce(ctx, g, held, ready)
		if ctx.Err() != nil {
			return nil
		}
		r.cfg.Logger.Warn("journal writer stopped; starting again", "group", number, "error", err)
		if !streams.Sleep(ctx, reopenPause) {
			return nil
		}
	}
	return nil
}

const (
	// reopenPause is the pause before a writer is opened again after an error.
	reopenPause = 200 * time.Millisecond
	// flushTimeout bounds how long a group that ends saves its index and writes its views. The next
	// holder writes the rest.
	flushTimeout = 3 * time.Second
)

// serveOnce opens a writer and runs it until it fails or ctx ends.
func (r *Router) serveOnce(
	ctx context.Context, g *group, held func() bool, ready func(),
) error {
	out, err := r.journals.OpenWriter(ctx, g.number)
	if err != nil {
		return err
	}
	// The index must have all commits of the former writers. This writer's first one ends them.
	if err := g.follower.Await(ctx, out.End()); err != nil {
		return err
	}
	views, err := r.newViews(ctx, g, out.End())
	if err != nil {
		return err
	}
	viewsCtx, stopViews := context.WithCancel(context.WithoutCancel(ctx))
	defer stopViews()
	viewsEnded := make(chan error, 1)
	go func() { viewsEnded <- views.Run(viewsCtx) }()

	w := newWriter(r, g, out, views, held)
	err = r.write(ctx, w, ready)
	if held() && !errors.Is(err, journal.ErrFenced) {
		flushing, cancel := context.WithTimeout(viewsCtx, flushTimeout)
		// The next start then reads nothing of the journal, and knows the ends of all logs also if
		// the journal has expired meanwhile.
		if saveErr := r.journals.SaveIndex(flushing, g.index); saveErr != nil {
			r.cfg.Logger.Warn("journal index not saved", "group", g.number, "error", saveErr)
		}
		if flushErr := views.Flush(flushing); flushErr != nil {
			r.cfg.Logger.Warn("hub logs not completed", "group", g.number, "error", flushErr)
		}
		cancel()
	}
	stopViews()
	return errors.Join(err, <-viewsEnded)
}

// write runs a writer, for this process and for others, until it fails or ctx ends.
func (r *Router) write(ctx context.Context, w *writer, ready func()) error {
	stop, err := r.answerOthers(ctx, w)
	if err != nil {
		return err
	}
	defer stop()
	w.group.writer.Store(w)
	defer w.group.writer.CompareAndSwap(w, nil)
	ready()
	return w.run(ctx)
}

// Append stores events or states of a hub, in order, and wholly or not at all. For events, the log's
// last event must have the sequence expected; 0 means that the log has no event, for instance because
// all have expired. For states, the log's last record must, whatever it is.
// Append sets the records' hub, sequence and time. It returns the sequence of the last record.
// Errors: jsapi.ErrConflict; jsapi.ErrOutcomeUnknown, the only one after which the events may be
// stored; jsapi.ErrNoLeader if no replica writes the group's journal; ctx's.
func (r *Router) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
) (last uint64, err error) {
	return r.route(ctx, &request{
		hub: hub, conditional: true, expected: expected, records: records,
	})
}

// AppendCommand stores the record of a command without a condition. Otherwise it is Append.
func (r *Router) AppendCommand(
	ctx context.Context, hub domain.HubID, payload []byte,
) (sequence uint64, err error) {
	return r.route(ctx, &request{
		hub: hub, records: []journal.Record{{Kind: journal.KindCommand, Payload: payload}},
	})
}

// AppendState stores records of the state of a hub's devices, in order, and wholly or not at all,
// without a condition. Otherwise it is Append.
func (r *Router) AppendState(
	ctx context.Context, hub domain.HubID, epoch domain.EpochID, orgID string, payloads ...[]byte,
) (last uint64, err error) {
	records := make([]journal.Record, len(payloads))
	for i, payload := range payloads {
		records[i] = journal.Record{
			Kind: journal.KindState, EpochID: epoch, OrgID: orgID, Payload: payload,
		}
	}
	return r.route(ctx, &request{hub: hub, records: records})
}

// route passes a request to the group's writer, in this process or another. It waits for a writer
// up to jsapi.Patience.
func (r *Router) route(ctx context.Context, req *request) (last uint64, err error) {
	g := r.groupOf(req.hub)
	if w := g.writer.Load(); w != nil && w.held() {
		if last, err = w.append(ctx, req); !errors.Is(err, errStopped) {
			return last, err
		}
		req = req.again()
	}
	return r.routeAgain(ctx, g, req)
}

// routeAgain passes a request to the group's writer until one takes it.
func (r *Router) routeAgain(
	ctx context.Context, g *group, req *request,
) (last uint64, err error) {
	patience, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	for pause := firstRoutePause; ; pause = min(2*pause, maxRoutePause) {
		if w := g.writer.Load(); w != nil && w.held() {
			last, err = w.append(ctx, req)
		} else {
			last, err = r.send(patience, g, req)
		}
		if !errors.Is(err, errStopped) && !errors.Is(err, errNoWriter) {
			return last, err
		}
		if !streams.Sleep(patience, pause) {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, fmt.Errorf(
				"hub log of %s: %w: no replica writes journal %d", req.hub, jsapi.ErrNoLeader, g.number,
			)
		}
		// A request that a writer has rejected can be sent again.
		req = req.again()
	}
}

const (
	firstRoutePause = 5 * time.Millisecond
	maxRoutePause   = 250 * time.Millisecond
)

// again returns a copy of a request that no writer has stored.
func (req *request) again() *request {
	return &request{
		hub: req.hub, conditional: req.conditional, expected: req.expected, records: req.records,
	}
}

// Sync returns once subscribers have got everything that was stored in the hub's log before the
// call. Errors are those of the broker and ctx.
func (r *Router) Sync(ctx context.Context, hub domain.HubID) error {
	return r.SyncGroup(ctx, r.groupOf(hub).number)
}

// SyncGroup returns once subscribers have got everything that was stored in the logs of a group
// before the call. Errors are those of the broker and ctx.
func (r *Router) SyncGroup(ctx context.Context, number int) error {
	g := r.groups[number]
	if w := g.writer.Load(); w != nil && w.held() {
		// Nobody else commits, and a commit is passed on before its append returns. IsCommitting
		// tells of a commit that may be stored before that.
		return nil
	}
	return g.follower.Sync(ctx)
}

// IsCommitting reports whether a commit of the hub's group that began before a time has an unknown
// outcome. Other replicas may already have it.
func (r *Router) IsCommitting(hub domain.HubID, before time.Time) bool {
	w := r.groupOf(hub).writer.Load()
	if w == nil {
		return false
	}
	began := w.committing.Load()
	return began != nil && began.Before(before)
}

// Tip returns what the journal is known to have committed of a hub's log. It returns false for a
// hub of which no record was ever journaled.
func (r *Router) Tip(hub domain.HubID) (journal.Tip, bool) { return r.groupOf(hub).index.Tip(hub) }

// Records reads a hub's records from its journal: from the sequence from up to to, and about as
// many bytes as given. It returns journal.ErrGone if the journal no longer has the first one.
func (r *Router) Records(
	ctx context.Context, hub domain.HubID, from, to uint64, bytes int,
) ([]journal.Record, error) {
	g := r.groupOf(hub)
	tip, ok := g.index.Tip(hub)
	if !ok {
		return nil, journal.ErrGone
	}
	return g.reader.Read(ctx, hub, tip, from, to, bytes)
}

// Oldest returns the sequence of a hub's oldest record in its journal that was stored at since or
// later. It returns journal.ErrGone if there is none.
func (r *Router) Oldest(
	ctx context.Context, hub domain.HubID, since time.Time,
) (seq uint64, err error) {
	g := r.groupOf(hub)
	tip, ok := g.index.Tip(hub)
	if !ok {
		return 0, journal.ErrGone
	}
	return g.reader.Oldest(ctx, hub, tip, since)
}

// Covers reports whether the hub's journal has every record of the hub that has not expired.
// Otherwise the hub's stream may have messages from before there was a journal.
func (r *Router) Covers(ctx context.Context, hub domain.HubID) (bool, error) {
	g := r.groupOf(hub)
	tip, ok := g.index.Tip(hub)
	if !ok {
		return false, nil
	}
	return g.reader.Covers(ctx, hub, tip)
}

// AwaitView returns once the stream of a hub's log has everything up to a sequence.
func (r *Router) AwaitView(ctx context.Context, hub domain.HubID, seq uint64) error {
	g := r.groupOf(hub)
	if w := g.writer.Load(); w != nil {
		return w.views.Await(ctx, hub, seq)
	}
	return r.awaitRemotely(ctx, g, hub, seq)
}
