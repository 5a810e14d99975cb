package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
	"hubcloud/projections/statemodel"
	"hubcloud/projections/status"
)

// RebuildStates is Rebuild of the last reported states: it builds them from the journals beside those
// in use, which can be read meanwhile, and replaces these.
func (b *Builder) RebuildStates(ctx context.Context) error {
	states, err := b.ofStates(ctx)
	if err != nil {
		return err
	}
	return states.rebuild(ctx, (*build).replaceStates)
}

// ofStates returns a Builder beside the last reported states, whose tables it makes sure to exist.
func (b *Builder) ofStates(ctx context.Context) (*Builder, error) {
	if b.cfg.Journal == nil {
		return nil, errors.New("rebuild: Journal: must not be nil for last reported states")
	}
	other := *b
	other.cfg.Schema = statemodel.Schema()
	err := database.WithConn(ctx, b.cfg.ConnConfig, func(conn *pgx.Conn) error {
		return statemodel.Install(ctx, conn)
	})
	return &other, wrap(err)
}

// newCopy makes the tables of the target.
func (b *build) newCopy(ctx context.Context) (*statemodel.Copy, error) {
	target, err := statemodel.NewCopy(statemodel.Config{
		Database: b.cfg.ConnConfig, Journal: b.cfg.Journal, Logger: b.cfg.Logger,
	}, b.target)
	if err != nil {
		return nil, err
	}
	return target, target.Create(ctx)
}

// replaceStates builds the target and replaces the states in use with it. It returns the new name of
// the replaced schema.
func (b *build) replaceStates(ctx context.Context) (replaced string, err error) {
	target, err := b.newCopy(ctx)
	if err != nil {
		return "", err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	following, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop()
	writing.Go(func() {
		if err := target.Follow(following); following.Err() == nil {
			fail(err)
		}
	})
	stopped := func() {
		stop()
		writing.Wait()
	}
	for ctx.Err() == nil {
		near, err := b.statesAreNear(ctx)
		if err == nil && near {
			replaced, err = b.trySwitchStates(ctx, stopped)
			if err == nil {
				return replaced, nil
			}
		}
		if err != nil && !errors.Is(err, errNotYet) && ctx.Err() == nil {
			return "", err
		}
		database.Pause(ctx, switchPause)
	}
	return "", context.Cause(ctx)
}

// statesAreNear reports whether the target has been up with all journals, and has about what the
// states in use have. It also moves the progress.
func (b *build) statesAreNear(ctx context.Context) (near bool, err error) {
	head, err := b.journalsHead(ctx, nil)
	if err != nil {
		return false, err
	}
	b.head.Store(head)
	b.connMu.Lock()
	defer b.connMu.Unlock()
	target, err := b.statePositions(ctx, b.conn, b.target)
	if err != nil {
		return false, err
	}
	b.journalsAt.Advance(target.Sum())
	if target.Built {
		b.phase.CompareAndSwap(PhaseLoad, PhaseFollow)
	}
	live, err := b.statePositions(ctx, b.conn, b.cfg.Schema)
	return target.Built && target.Sum()+switchDistance >= min(live.Sum(), head), err
}

func (b *build) statePositions(
	ctx context.Context, db statemodel.Queries, schemaName string,
) (statemodel.Positions, error) {
	return statemodel.ReadPositions(ctx, db, schemaName, b.cfg.Journal.Number())
}

// journalsHead returns the number of commits in the journals. It fails with
// projections.ErrOtherStream if one ends before a position.
func (b *build) journalsHead(ctx context.Context, positions []uint64) (sum uint64, err error) {
	for number := range b.cfg.Journal.Number() {
		seen := uint64(0)
		if positions != nil {
			seen = positions[number]
		}
		end, err := b.cfg.Journal.End(ctx, number, seen)
		if err != nil {
			return 0, err
		}
		if end < seen {
			return 0, fmt.Errorf("%w: the projector builds them again", projections.ErrOtherStream)
		}
		sum += end
	}
	return sum, nil
}

// trySwitchStates replaces the states in use in one transaction, while no projector writes to them.
// It calls stopped once the target has everything that they have; then the target must not change
// any more. It fails with errNotYet if the switch must be tried again.
func (b *build) trySwitchStates(
	ctx context.Context, stopped func(),
) (replaced string, err error) {
	b.connMu.Lock()
	defer b.connMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, database.CommitTimeout)
	defer cancel()
	replaced = schema.OldName(b.cfg.Schema, b.target, time.Now())
	err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		stops, err := query.New(tx).Stops(ctx)
		if err != nil {
			return err
		}
		if _, held := status.StopOf(stops, projections.Devices); held {
			b.phase.Store(PhaseHeld)
			return errNotYet
		}
		b.phase.Store(PhaseSwitch)
		if err := statemodel.Hold(ctx, tx); err != nil {
			return err
		}
		if err := b.catchUpStates(ctx, tx); err != nil {
			return err
		}
		stopped()
		if err := statemodel.Replace(ctx, tx, b.target, replaced); err != nil {
			return err
		}
		return query.New(tx).RecordRetired(ctx, query.RecordRetiredParams{
			Name: replaced, DefinitionHash: statemodel.Hash(),
		})
	})
	if err != nil {
		return "", err
	}
	return replaced, nil
}

// catchUpStates waits until the target has everything that the states in use have, which do not
// change meanwhile. States that were made from other journals are not waited for.
func (b *build) catchUpStates(ctx context.Context, tx pgx.Tx) error {
	live, err := b.statePositions(ctx, tx, b.cfg.Schema)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	_, err = b.journalsHead(waiting, live.At)
	if errors.Is(err, projections.ErrOtherStream) {
		return nil
	}
	for err == nil {
		var target statemodel.Positions
		target, err = b.statePositions(waiting, tx, b.target)
		if err == nil && target.Reached(live.At) {
			return nil
		}
		if database.Pause(waiting, switchPause); waiting.Err() != nil {
			err = waiting.Err()
		}
	}
	return notYet(ctx, err)
}
