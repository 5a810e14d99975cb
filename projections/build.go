package projections

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/projections/internal/query"
)

// What read models are built for.
const (
	// PurposeInstall is a program's first start with its definition of the read models.
	PurposeInstall = "install"
	// PurposeRebuild is to take the place of those in use.
	PurposeRebuild = "rebuild"
	// PurposeVerify is to be compared with those in use.
	PurposeVerify = "verify"
)

// What a build is doing.
const (
	// PhaseLoad reads the directory's events and writes rows.
	PhaseLoad = "load"
	// PhaseFollow takes what was stored meanwhile.
	PhaseFollow = "follow"
	// PhaseCompare compares with the read models in use.
	PhaseCompare = "compare"
	// PhaseHeld waits because an operator has stopped a projection.
	PhaseHeld = "held"
	// PhaseSwitch takes the place of the read models in use.
	PhaseSwitch = "switch"
	// PhaseDone and PhaseFailed are its end.
	PhaseDone   = "done"
	PhaseFailed = "failed"
)

// Suffixes of the names of schemas beside the one in use: behind each stands what tells it from
// others of its kind.
const (
	suffixNext   = "_next_"
	suffixVerify = "_verify_"
	suffixOld    = "_old_"
)

// BuildProgress is how a build does.
type BuildProgress struct {
	// Target is the schema that is built, Purpose and Phase are of the constants above.
	Target, Purpose, Phase string
	// Sequence is how far it is in the directory, Head how far it has to go.
	Sequence, Head uint64
	// PerSecond is how many events it reads in a second; 0 while it is not known.
	PerSecond float64
	// Elapsed is how long it has been at it.
	Elapsed time.Duration
	// Followed says that another process does it.
	Followed bool
}

// Left is how long it has to go, as far as it can be told.
func (p BuildProgress) Left() (time.Duration, bool) {
	if p.PerSecond <= 0 || p.Sequence > p.Head {
		return 0, false
	}
	return time.Duration(float64(p.Head-p.Sequence) / p.PerSecond * float64(time.Second)), true
}

// builder builds read models beside those of a schema: one process at a time, the one that holds a
// lock in the database.
type builder struct {
	schema string
	// dial finds the tables of the schema in use.
	dial     *pgx.ConnConfig
	dir      Directory
	presence jetstream.KeyValue
	log      *slog.Logger
	purpose  string
	// rows is how many rows of a load are folded in memory before they are written.
	rows int
	// report hears how the build does, twice a second, one call at a time; nil when nobody does.
	report func(BuildProgress)
}

// build is one build under way.
type build struct {
	*builder
	target string
	begun  time.Time
	// conn holds the lock; mu is held by who uses it.
	mu   sync.Mutex
	conn *pgx.Conn

	phase atomic.Value // string
	// directory and presenceAt are how far the tables are, head how far the directory is.
	directory, presenceAt progress
	head                  atomic.Uint64
	// old is the name of what the target has taken the place of, once it has.
	old string
}

// errBusy says that another process builds beside the schema.
var errBusy = errors.New("another process builds read models")

const (
	// reportEvery is how often a build says how it does.
	reportEvery = 500 * time.Millisecond
	// cleanLimit bounds how long what a build leaves is cleaned up.
	cleanLimit = 20 * time.Second
)

// hold runs fn with the lock, or fails with errBusy. Whatever builds before it have left is dropped
// first, and what is left of this one afterwards. fn's context ends when the lock may be lost.
func (b *builder) hold(ctx context.Context, fn func(ctx context.Context, b *build) error) error {
	return onConn(ctx, b.dial, func(conn *pgx.Conn) (err error) {
		if err := endWhenSilent(ctx, conn); err != nil {
			return err
		}
		if mine, err := tryLock(ctx, conn, lockBuilds, lockOf(b.schema)); err != nil || !mine {
			return errors.Join(err, errBusy)
		}
		if err := dropLeftovers(ctx, conn, b.schema); err != nil {
			return err
		}
		suffix := suffixNext
		if b.purpose == PurposeVerify {
			suffix = suffixVerify
		}
		var tag [4]byte
		rand.Read(tag[:]) // never fails: it ends the program instead
		made := &build{
			builder: b,
			conn:    conn,
			target:  b.schema + suffix + hex.EncodeToString(tag[:]),
			begun:   time.Now(),
		}
		made.phase.Store(PhaseLoad)
		err = query.New(conn).
			BeginBuild(ctx, query.BeginBuildParams{
				Target: made.target, Schema: b.schema, Purpose: b.purpose,
			})
		if err != nil {
			return err
		}
		working, cancel := context.WithCancelCause(ctx)
		reported := make(chan struct{})
		go func() {
			defer close(reported)
			made.reports(working, cancel)
		}()
		err = fn(working, made)
		if cause := context.Cause(working); err != nil && cause != nil && ctx.Err() == nil {
			err = cause
		}
		cancel(nil)
		<-reported
		made.end(context.WithoutCancel(ctx), err)
		return err
	})
}

// end records how a build has ended, and drops its schema unless it has another name by now. It
// does not need the lock, nor its connection, which can be gone: no other build has a schema of
// that name. What it cannot drop the next build does.
func (b *build) end(ctx context.Context, outcome error) {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	b.phase.Store(PhaseDone)
	if outcome != nil {
		b.phase.Store(PhaseFailed)
	}
	err := onConn(ctx, b.dial, func(conn *pgx.Conn) error {
		return errors.Join(b.note(ctx, conn), forgetSchema(ctx, conn, b.target))
	})
	if err != nil {
		b.log.Warn(
			"could not clean up after building read models; the next build does",
			"schema", b.target, "error", err,
		)
	}
	b.tell(b.progress(0))
}

// reports says twice a second how the build does, in the database and to who listens, and ends the
// build when it cannot: then the lock may be somebody else's.
func (b *build) reports(ctx context.Context, lost context.CancelCauseFunc) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var rate speed
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b.mu.TryLock() { // whoever has it keeps the lock alive too
			err := b.note(ctx, b.conn)
			b.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				lost(fmt.Errorf("the lock of who builds read models: %w", err))
				return
			}
		}
		at, _ := b.directory.position()
		b.tell(b.progress(rate.of(at, time.Now())))
	}
}

func (b *build) progress(perSecond float64) BuildProgress {
	at, _ := b.directory.position()
	return BuildProgress{
		Target: b.target, Purpose: b.purpose, Phase: b.phase.Load().(string), Sequence: at,
		Head: max(at, b.head.Load()), PerSecond: perSecond,
		Elapsed: time.Since(b.begun),
	}
}

func (b *build) tell(p BuildProgress) {
	if b.report != nil {
		b.report(p)
	}
}

func (b *build) note(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	p := b.progress(0)
	return query.New(conn).NoteBuild(ctx, query.NoteBuildParams{
		Target: p.Target, Phase: p.Phase, Sequence: int64(p.Sequence), Head: int64(p.Head),
	})
}

// speed is how fast a position moves, over the last seconds.
type speed struct {
	times  [speedSamples]time.Time
	places [speedSamples]uint64
	count  int
}

const speedSamples = 11 // 5 s of reports

// of adds a position and gives how far it moves in a second; 0 while that is not known.
func (s *speed) of(at uint64, now time.Time) float64 {
	first := 0
	if s.count == speedSamples {
		copy(s.times[:], s.times[1:])
		copy(s.places[:], s.places[1:])
		s.count--
	}
	s.times[s.count], s.places[s.count] = now, at
	s.count++
	took := now.Sub(s.times[first]).Seconds()
	if took <= 0 || at < s.places[first] {
		return 0
	}
	return float64(at-s.places[first]) / took
}

// onTarget runs fn on a connection that finds the tables of the target, and that the server ends
// soon when this process is gone. What is written on it is as good as gone itself after a crash, so
// nothing waits for the disk.
func (b *build) onTarget(
	ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error,
) error {
	dial := b.dial.Copy()
	dial.RuntimeParams["search_path"] = b.target
	dial.RuntimeParams["synchronous_commit"] = "off"
	return onConn(ctx, dial, func(conn *pgx.Conn) error {
		// Not every version of PostgreSQL can notice a client that is gone while it works.
		const prepare = "SET maintenance_work_mem = '128MB'; SELECT " +
			"set_config('client_connection_check_interval', '1s', false) " +
			"WHERE current_setting('client_connection_check_interval', true) IS NOT NULL"
		if _, err := conn.Exec(ctx, prepare); err != nil {
			return err
		}
		return fn(ctx, conn)
	})
}

//go:embed sql/beside.sql
var beside string

// dropLeftovers drops what builds beside a schema have left. The lock of who builds must be held.
func dropLeftovers(ctx context.Context, conn *pgx.Conn, schema string) error {
	rows, err := conn.Query(ctx, beside, schema+suffixNext, schema+suffixVerify)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := forgetSchema(ctx, conn, name); err != nil {
			return err
		}
	}
	return nil
}
