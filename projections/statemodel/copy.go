package statemodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"hubcloud/projections/database"
)

// copyFlushInterval is FlushInterval of a copy: short, since a switch waits for the last flush.
const copyFlushInterval = 200 * time.Millisecond

// Copy is a second set of the tables, in a schema of its own, that is built from the journals beside
// the tables in use: to replace them, or to be compared with them. Its methods must not be called at
// the same time.
type Copy struct {
	cfg     Config
	schema  string
	metrics *metrics
}

// NewCopy returns a Copy in a schema. FlushInterval and Metrics of the configuration are not used.
func NewCopy(cfg Config, schema string) (*Copy, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.FlushInterval = copyFlushInterval
	// Nothing of a copy must survive a crash of the server; the transaction that puts it into use
	// waits for the disk.
	cfg.Database = cfg.Database.Copy()
	cfg.Database.RuntimeParams["synchronous_commit"] = "off"
	m, err := newMetrics(nil)
	return &Copy{cfg, schema, m}, err
}

// Create creates the tables.
func (c *Copy) Create(ctx context.Context) error {
	return database.WithConn(ctx, c.cfg.Database, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return create(ctx, tx, c.schema) })
	})
}

// Reach brings the tables exactly to positions, which the journals must have. It fails if the tables
// are beyond one, because the commits up to there have expired.
func (c *Copy) Reach(ctx context.Context, positions []uint64) error {
	running, ctx := errgroup.WithContext(ctx)
	for number, until := range positions {
		if until == 0 {
			continue
		}
		running.Go(func() error {
			p := newProjection(c.cfg, c.metrics, c.schema, number, 0)
			p.until = until
			if err := p.run(ctx); !errors.Is(err, errReached) {
				return err
			}
			return nil
		})
	}
	return running.Wait()
}

// Follow follows all journals until an error, or until ctx ends.
func (c *Copy) Follow(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	for number := range c.cfg.Journal.Number() {
		running.Go(func() error {
			return newProjection(c.cfg, c.metrics, c.schema, number, 0).run(ctx)
		})
	}
	return running.Wait()
}

// Hold keeps all projectors from writing to the tables in use until the transaction ends. It waits
// for the writes under way.
func Hold(ctx context.Context, tx pgx.Tx) error {
	// A projector's transaction begins with a shared lock of this row, and ends if its term is over.
	var term int64
	if err := tx.QueryRow(ctx, SQL(takeOver)).Scan(&term); err != nil {
		return fmt.Errorf("hold the projector of last reported states: %w", err)
	}
	return nil
}

// Replace puts the tables of a schema into use, which a Copy has built and which nobody writes to
// any more. Those in use get the name replaced. The transaction must have called Hold.
func Replace(ctx context.Context, tx pgx.Tx, schema, replaced string) error {
	for _, statement := range []string{
		In(schema, "UPDATE {schema}.leader SET term = ") +
			SQL("(SELECT term FROM {schema}.leader)"),
		SQL("ALTER SCHEMA {schema} RENAME TO ") + pgx.Identifier{replaced}.Sanitize(),
		In(schema, "ALTER SCHEMA {schema} RENAME TO ") + Schema(),
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("replace last reported states: %w", err)
		}
	}
	return nil
}
