package rebuild

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// The kinds of schemas that are not the one in use.
const (
	// KindOld is a schema that a rebuild has replaced.
	KindOld = "old"
	// KindOtherVersion is the schema of a program with another definition of the read models.
	KindOtherVersion = "other_version"
	// KindUnfinished is what an interrupted rebuild or verify has left.
	KindUnfinished = "unfinished"
)

// Droppable is a schema of read models that is not the one in use.
type Droppable struct {
	Schema string
	// Kind is one of the Kind constants.
	Kind string
	// Bytes is the schema's size.
	Bytes int64
	// Kept is why the schema cannot be dropped; empty if it can be, or was.
	Kept string
}

//go:embed schema_sizes.sql
var schemaSizes string

// Unused returns the schemas of read models that are not the one in use.
func (c *Control) Unused(ctx context.Context) (all []Droppable, err error) {
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		all, err = c.unused(ctx, conn)
		return err
	})
	return all, err
}

func (c *Control) unused(ctx context.Context, conn *pgx.Conn) ([]Droppable, error) {
	rows, err := conn.Query(ctx, schemaSizes)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Droppable, err error) {
		err = row.Scan(&d.Schema, &d.Bytes)
		return d, err
	})
	if err != nil {
		return nil, err
	}
	var unused []Droppable
	for _, d := range all {
		if d.Schema == c.cfg.Schema {
			continue
		}
		d.Kind = kindOf(d.Schema)
		if d.Kept, err = keptReason(ctx, conn, d); err != nil {
			return nil, err
		}
		unused = append(unused, d)
	}
	return unused, nil
}

func kindOf(name string) string {
	if schema.IsOld(name) {
		return KindOld
	}
	if _, unfinished := schema.IsUnfinished(name); unfinished {
		return KindUnfinished
	}
	return KindOtherVersion
}

// keptReason returns why a schema cannot be dropped; empty if it can be.
func keptReason(ctx context.Context, db schema.DBTX, d Droppable) (string, error) {
	switch d.Kind {
	case KindUnfinished:
		base, _ := schema.IsUnfinished(d.Schema)
		if held, err := schema.BuildLock(base).IsHeld(ctx, db); err != nil || held {
			return "it is being built", err
		}
	case KindOtherVersion:
		for _, lock := range []schema.Lock{
			schema.ServingLock(d.Schema), schema.ProjectorLock(d.Schema),
		} {
			if held, err := lock.IsHeld(ctx, db); err != nil || held {
				return "a program of another version serves from it", err
			}
		}
	}
	return "", nil
}

// Drop drops every schema of read models that is not used: those that rebuilds have replaced, those
// of other versions that no longer run, and of interrupted builds. It returns all unused
// schemas, with the reason for those that it kept. It never drops the schema in use.
func (c *Control) Drop(ctx context.Context) (all []Droppable, err error) {
	err = c.withConn(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if all, err = c.unused(ctx, conn); err != nil {
			return err
		}
		for i, d := range all {
			if d.Kept != "" {
				continue
			}
			if all[i].Kept, err = dropUnused(ctx, conn, d); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// dropUnused drops a schema, unless a process has begun to use it.
func dropUnused(ctx context.Context, conn *pgx.Conn, d Droppable) (kept string, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// The lock keeps programs from starting to use the schema.
		if err := schema.InstallLock().Take(ctx, tx); err != nil {
			return err
		}
		if kept, err = keptReason(ctx, tx, d); err != nil || kept != "" {
			return err
		}
		return schema.DropIn(ctx, tx, d.Schema)
	})
	if schema.HasCode(err, schema.CodeLockNotAvailable) {
		return "a session still reads from it; try again", nil
	}
	return kept, err
}
