package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/projections/schema"
	"hubcloud/streams/journal"
	"hubcloud/streams/shares"
)

const (
	// maxRecords is how many records a batch has before it is written early: then the projection is
	// behind.
	maxRecords = 20_000
	// maxRows is about how many rows a round writes: further hubs wait for the next round.
	maxRows = 5000
	// maxPause is the longest pause after a batch that took longer than Interval to write, and
	// urgentPause the pause before a hub is written that reports an alarm.
	maxPause    = time.Second
	urgentPause = 100 * time.Millisecond
)

// journalEntry is a commit of a journal, or stands for commits that have expired unread.
type journalEntry struct {
	journal.Commit
	expired bool
	// urgent are the hubs that report an alarm in the commit.
	urgent []domain.HubID
}

func newJournalEntry(c journal.Commit) journalEntry {
	e := journalEntry{Commit: c}
	for i := range c.Records {
		r := &c.Records[i]
		if r.Kind == journal.KindHubEvent && !slices.Contains(e.urgent, r.Hub) &&
			devicestate.RaisesAlarm(r.Payload) {
			e.urgent = append(e.urgent, r.Hub)
		}
	}
	return e
}

// devicesSource is the Source of the projection schema.Devices in one journal. It keeps the states
// of hubs that report in memory, and reads the states of other hubs from their rows.
type devicesSource struct {
	Journal *journal.Journal
	// Number is the number of the journal.
	Number int
	// Interval is the least time between two writes of a row.
	Interval time.Duration
	// MaxChannels is about how many channels are kept in memory.
	MaxChannels int
	// Turns is the order in which hubs are written, in rounds of about MaxRows rows: a flood of one
	// hub holds up the others for one round.
	Turns   *shares.Turns
	MaxRows int
	// Kept are the channels that organizations have.
	Kept *shares.Pool
	// Announce makes each commit announce the hubs of which something may need attention.
	Announce bool
	// Sweep deletes the rows of hubs that were released, and returns the hubs; nil for never. It is
	// called at first and every SweepInterval.
	Sweep         func(ctx context.Context, journal int) ([]domain.HubID, error)
	SweepInterval time.Duration
	Logger        *slog.Logger
	metrics       *metrics

	states reportedStates
}

// Name implements schema.Stream.
func (d *devicesSource) Name() string { return schema.JournalName(d.Number) }

// Head implements schema.Stream.
func (d *devicesSource) Head(ctx context.Context, seen uint64) (uint64, error) {
	return d.Journal.End(ctx, d.Number, seen)
}

// StoredAt implements schema.Stream.
func (d *devicesSource) StoredAt(ctx context.Context, seq uint64) (time.Time, bool, error) {
	return d.Journal.StoredAt(ctx, d.Number, seq)
}

// Header implements Source.
func (d *devicesSource) Header(e journalEntry) Header {
	if e.expired {
		return Header{Sequence: e.Seq, Type: "commit", Expired: true}
	}
	return Header{Sequence: e.Seq, Type: "commit", ID: schema.CommitID(e.Term, e.Time)}
}

// Permanent implements Source: a record that cannot be folded puts its hub in doubt, and nothing
// stops the projection.
func (d *devicesSource) Permanent(error) bool { return false }

// Follow implements Source. It calls fn once every Interval with what was stored since: a channel
// that reports all the time costs one write. A batch that takes long is followed by as long a
// pause, so that the database has time for others.
func (d *devicesSource) Follow(
	ctx context.Context, at Checkpoint, fn func(batch []journalEntry) error,
) error {
	d.states = newReportedStates(d.MaxChannels, at, d.Turns.Another())
	received := make(chan []journalEntry)
	running, ctx := errgroup.WithContext(ctx)
	pass := func(entries []journalEntry) {
		select {
		case received <- entries:
		case <-ctx.Done():
		}
	}
	// The follower begins with the commit of the checkpoint, to compare it.
	follower := d.Journal.NewOffered(d.Number, max(1, at.Sequence), func(commits []journal.Commit) {
		entries := make([]journalEntry, len(commits))
		for i, c := range commits {
			entries[i] = newJournalEntry(c)
		}
		pass(entries)
	}, func(_, to uint64) {
		pass([]journalEntry{{Commit: journal.Commit{Seq: to}, expired: true}})
	})
	follower.Passed(at.Sequence) // a journal that is idle for its retention loses the commit
	running.Go(func() error { return follower.Run(ctx) })
	running.Go(func() error { return d.gather(ctx, received, fn) })
	err := running.Wait()
	if errors.Is(err, journal.ErrBeyondEnd) {
		return fmt.Errorf("%w: %w", schema.ErrOtherStream, err)
	}
	return err
}

// gather collects what is received and calls fn with it, and with nothing while hubs wait for their
// turn to be written.
func (d *devicesSource) gather(
	ctx context.Context, received <-chan []journalEntry, fn func(batch []journalEntry) error,
) error {
	var batch []journalEntry
	records, urgent := 0, false
	due := time.NewTimer(d.Interval)
	defer due.Stop()
	var swept time.Time
	wrote := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entries := <-received:
			batch = append(batch, entries...)
			for i := range entries {
				records += len(entries[i].Records)
				if len(entries[i].urgent) > 0 && !urgent {
					urgent = true
					due.Reset(min(d.Interval, max(0, urgentPause-time.Since(wrote))))
				}
			}
			if records < maxRecords {
				continue
			}
		case <-due.C:
		}
		begun := time.Now()
		if d.Sweep != nil && time.Since(swept) >= d.SweepInterval {
			if err := d.sweep(ctx); err != nil {
				return err
			}
			swept = time.Now()
		}
		if len(batch)+len(d.states.changed) > 0 {
			if err := fn(batch); err != nil {
				return err
			}
			batch, records, urgent, wrote = nil, 0, false, time.Now()
		}
		took := time.Since(begun)
		pause := min(took, maxPause)
		if len(d.states.changed) == 0 {
			pause = max(pause, d.Interval-took)
		}
		due.Reset(pause)
	}
}

// sweep deletes the rows of hubs that were released. No batch is applied meanwhile.
func (d *devicesSource) sweep(ctx context.Context) error {
	hubs, err := d.Sweep(ctx, d.Number)
	if err != nil {
		return fmt.Errorf("delete the states of released hubs: %w", err)
	}
	for _, id := range hubs {
		d.states.remove(id)
	}
	if len(hubs) > 0 {
		d.Logger.Info("states of released hubs deleted", "hubs", len(hubs))
	}
	return nil
}

// Statements implements Source. It folds the records of a batch, and writes the hubs whose turn it
// is.
func (d *devicesSource) Statements(
	ctx context.Context, conn *pgx.Conn, batch []journalEntry,
) ([]schema.Statement, error) {
	if err := d.states.load(ctx, conn, batch); err != nil {
		return nil, err
	}
	all := statements{withoutDisk}
	for i := range batch {
		d.states.folded = append(d.states.folded, d.Header(batch[i]))
		if !batch[i].expired {
			d.fold(&batch[i])
		} else if d.states.lose() {
			all.add(schema.Statement{
				What: "put hubs in doubt", SQL: loseReported, Rows: schema.AnyRows,
				Args: func() []any { return []any{d.Number} },
			})
		}
	}
	written := d.states.addChanges(&all, d.Number, d.MaxRows, d.metrics)
	if d.Announce {
		all.add(schema.AnnounceAttention(written.urgent, true))
		all.add(schema.AnnounceAttention(written.alarming, false))
	}
	return all, nil
}

// Reached implements deferring.
func (d *devicesSource) Reached() Header { return d.states.reach() }

// fold folds the records of a commit.
func (d *devicesSource) fold(e *journalEntry) {
	for i := range e.Records {
		r := &e.Records[i]
		hub := d.states.hubs[r.Hub]
		if r.OrgID != "" && r.OrgID != hub.org {
			hub.org = strings.Clone(r.OrgID)
		}
		org := shares.Spender{Org: hub.org}
		entry := entryOf(r)
		_, kept, share := d.Kept.Held(org)
		entry.Full = kept >= share
		if err := hub.state.Fold(entry); err != nil {
			d.metrics.unreadable.Inc()
			d.Logger.Debug("record not folded; its hub is in doubt", "hub_id", r.Hub, "error", err)
		}
		if added := hub.state.Added; added != 0 {
			d.Kept.Adjust(org, int64(added))
			hub.state.Added = 0
		}
		if hub.state.Omitted == r.Seq {
			d.Kept.HeldBack(org)
		}
	}
	for _, link := range e.Links {
		// Not for a hub of which only commands are known.
		if hub := d.states.hubs[link.Hub]; hub.state.Seq > 0 {
			d.states.change(link.Hub, hub, e.Seq, slices.Contains(e.urgent, link.Hub))
		}
	}
}

// Empty implements emptier: the journals are others after a restore from a backup.
func (d *devicesSource) Empty() schema.Statement {
	return schema.Statement{
		What: "delete the states of another journal", SQL: resetReported, Rows: schema.AnyRows,
		Args: func() []any { return []any{d.Number} },
	}
}
