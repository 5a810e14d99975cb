package statemodel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/projections/database"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/journal"
)

// errOtherJournal means that the checkpoint is that of another journal.
var errOtherJournal = errors.New("the checkpoint is of another journal")

// checkpoint is a place in a journal.
type checkpoint struct {
	position uint64
	// term and time are those of the commit at position, in nanoseconds.
	term uint64
	time int64
}

// errReached means that a projection has reached the commit at which it is to end.
var errReached = errors.New("the projection has reached its end")

// projection projects one journal under one term into the tables of a schema, from its checkpoint
// until an error.
type projection struct {
	cfg     Config
	metrics *metrics
	logger  *slog.Logger
	schema  string
	number  int
	// until is the commit at which the projection ends; 0 for none.
	until uint64
	// label is the value of the metrics' label journal.
	label   string
	leading int64
	// loads is a connection for reads of rows.
	loads *pgx.Conn
	// start is the checkpoint that the projection began with.
	start checkpoint

	mu sync.Mutex
	// hubs are the states in memory, and channels the number of their channels. dirty are those
	// with unwritten changes.
	hubs     map[domain.HubID]*cachedHub
	channels int
	dirty    map[domain.HubID]*cachedHub
	// at is the last commit that was folded, written the one of the last flush.
	at, written checkpoint
	// oldest is the time of the oldest record that was folded and not written.
	oldest time.Time
	// lost means that commits have expired unread.
	lost bool
	// reached means that the journal was read up to where it ended when the projection began, and
	// built that the tables have recorded it.
	reached, built bool
	// failure ends the projection.
	failure error
}

// cachedHub is the state of a hub in memory.
type cachedHub struct {
	state *devicestate.Hub
	// flushed is the sequence of the last entry that the rows have, and channels the number of
	// channels that were counted.
	flushed  uint64
	channels int
}

func newProjection(
	cfg Config, m *metrics, schema string, number int, term int64,
) *projection {
	return &projection{
		cfg: cfg, metrics: m, logger: cfg.Logger.With("journal", number), schema: schema,
		number: number, label: strconv.Itoa(number), leading: term,
		hubs: map[domain.HubID]*cachedHub{}, dirty: map[domain.HubID]*cachedHub{},
	}
}

// isCopy reports whether the tables are not those in use.
func (p *projection) isCopy() bool { return p.schema != Schema() }

// sql returns a statement with the name of the projection's schema.
func (p *projection) sql(statement string) string { return In(p.schema, statement) }

// run projects until an error.
func (p *projection) run(ctx context.Context) error {
	return database.WithConn(ctx, p.cfg.Database, func(loads *pgx.Conn) error {
		return database.WithConn(ctx, p.cfg.Database, func(writes *pgx.Conn) error {
			p.loads = loads
			err := p.follow(ctx, writes)
			other := errors.Is(err, errOtherJournal) || errors.Is(err, journal.ErrBeyondEnd)
			if other && !p.isCopy() {
				p.logger.Warn("the journal is another one; last reported states are built again")
				_, resetErr := writes.Exec(ctx, p.sql(reset), p.number)
				err = errors.Join(err, resetErr)
			}
			return err
		})
	})
}

// follow reads the checkpoint and follows the journal from there.
func (p *projection) follow(ctx context.Context, writes *pgx.Conn) error {
	var position, term int64
	err := writes.QueryRow(ctx, p.sql(readCheckpoint), p.number).
		Scan(&position, &term, &p.start.time, &p.built)
	if err != nil {
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	p.start.position, p.start.term = uint64(position), uint64(term)
	p.at, p.written = p.start, p.start
	if err := p.ended(); err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(ctx)
	// The follower begins with the commit of the checkpoint, to compare it.
	follower := p.cfg.Journal.NewFollower(
		p.number, max(1, p.start.position),
		func(commits []journal.Commit) { p.deliver(ctx, commits) }, p.missing,
	)
	follower.Passed(p.start.position) // a journal that is idle for its retention loses the commit
	running.Go(func() error { return follower.Run(ctx) })
	running.Go(func() error { return p.runFlushes(ctx, writes) })
	running.Go(func() error {
		if err := follower.Sync(ctx); err != nil {
			return err
		}
		p.mu.Lock()
		p.reached = true
		p.mu.Unlock()
		return nil
	})
	return running.Wait()
}

// ended returns errReached if the tables have the commit at which the projection is to end, and
// another error if they are beyond it.
func (p *projection) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch at := p.written.position; {
	case p.until == 0 || at < p.until:
		return nil
	case at > p.until:
		return fmt.Errorf(
			"journal %d: commit %d has expired: the oldest one follows %d", p.number, p.until, at,
		)
	}
	return errReached
}

// missing records that commits have expired before they were read.
func (p *projection) missing(from, to uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.start.position > 0 || len(p.hubs) > 0 {
		p.lost = true
		for _, h := range p.hubs {
			h.state.Lose(h.state.Seq)
		}
	}
	p.at = checkpoint{position: to}
}

// deliver folds commits. Errors end the projection at its next flush.
func (p *projection) deliver(ctx context.Context, commits []journal.Commit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return
	}
	if first := commits[0]; first.Seq == p.start.position {
		if first.Term != p.start.term || first.Time.UnixNano() != p.start.time {
			p.failure = errOtherJournal
			return
		}
		commits = commits[1:]
	}
	if last := len(commits) - 1; p.until > 0 && last >= 0 && commits[last].Seq > p.until {
		commits = commits[:max(0, last-int(commits[last].Seq-p.until)+1)]
	}
	if len(commits) == 0 {
		return
	}
	if err := p.loadMissing(ctx, commits); err != nil {
		p.failure = err
		return
	}
	for i := range commits {
		p.fold(&commits[i])
	}
	last := commits[len(commits)-1]
	p.at = checkpoint{last.Seq, last.Term, last.Time.UnixNano()}
}

// loadMissing makes sure that the states of all hubs of the commits are in memory. It must be
// called with p.mu held.
func (p *projection) loadMissing(ctx context.Context, commits []journal.Commit) error {
	var ids []string
	for i := range commits {
		for _, link := range commits[i].Links {
			if p.hubs[link.Hub] == nil {
				id := strings.Clone(string(link.Hub)) // the hub's text is a part of a longer one
				p.hubs[domain.HubID(id)] = &cachedHub{state: new(devicestate.Hub)}
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	loaded, err := load(ctx, p.loads, p.schema, ids)
	if err != nil {
		return err
	}
	for id, state := range loaded {
		p.hubs[id].state, p.hubs[id].flushed = state, state.Seq
	}
	return nil
}

// fold folds a commit. It must be called with p.mu held.
func (p *projection) fold(c *journal.Commit) {
	for i := range c.Records {
		r := &c.Records[i]
		hub := p.hubs[r.Hub]
		entry := entryOf(r)
		if err := hub.state.Fold(entry); err != nil {
			p.metrics.unreadable.Inc()
			p.logger.Debug("record not folded; its hub is in doubt", "hub_id", r.Hub, "error", err)
		}
	}
	for _, link := range c.Links {
		hub := p.hubs[link.Hub]
		// Not for a hub of which only commands are known.
		if hub.state.Seq > 0 && p.dirty[link.Hub] == nil {
			p.dirty[domain.HubID(strings.Clone(string(link.Hub)))] = hub
		}
	}
	if len(c.Records) > 0 && p.oldest.IsZero() {
		p.oldest = c.Records[0].Time
	}
	p.metrics.records.Add(float64(len(c.Records)))
}

// entryOf returns a record in the form that is folded.
func entryOf(r *journal.Record) devicestate.Entry {
	e := devicestate.Entry{Seq: r.Seq, Time: r.Time, Number: r.Through, EpochID: r.EpochID}
	switch r.Kind {
	case journal.KindHubEvent, journal.KindCloudEvent:
		e.Event = r.Payload
	case journal.KindState:
		e.State = r.Payload
	}
	return e
}
