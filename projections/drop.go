package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hubcloud/projections/internal/query"
)

// What a schema of read models is that is not this program's own.
const (
	// KindOld is one that a rebuild has taken the place of.
	KindOld = "old"
	// KindOtherVersion is that of a program with another definition of the read models.
	KindOtherVersion = "other_version"
	// KindUnfinished is what a rebuild or a verify has left that was cut off.
	KindUnfinished = "unfinished"
)

// Droppable is a schema of read models beside this program's own.
type Droppable struct {
	Schema string
	// Kind is one of the Kind… constants.
	Kind string
	// Bytes is how much room it takes.
	Bytes int64
	// Kept is why it cannot be dropped: somebody uses it. Empty when it can, or was.
	Kept string
}

//go:embed sql/sizes.sql
var sizes string

// Beside gives the schemas of read models that are kept beside this program's own, with what keeps
// them.
func (c *Control) Beside(ctx context.Context) (all []Droppable, err error) {
	err = c.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		all, err = c.beside(ctx, conn)
		return err
	})
	return all, err
}

func (c *Control) beside(ctx context.Context, conn *pgx.Conn) ([]Droppable, error) {
	rows, err := conn.Query(ctx, sizes)
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
	var others []Droppable
	for _, d := range all {
		if d.Schema == c.schema {
			continue
		}
		d.Kind = kindOf(d.Schema)
		if d.Kept, err = keptBy(ctx, conn, d); err != nil {
			return nil, err
		}
		others = append(others, d)
	}
	return others, nil
}

func kindOf(schema string) string {
	switch {
	case strings.Contains(schema, suffixOld):
		return KindOld
	case strings.Contains(schema, suffixNext), strings.Contains(schema, suffixVerify):
		return KindUnfinished
	default:
		return KindOtherVersion
	}
}

// keptBy says who uses a schema; empty when nobody does.
func keptBy(ctx context.Context, db query.DBTX, d Droppable) (string, error) {
	switch d.Kind {
	case KindUnfinished:
		base, _, _ := strings.Cut(
			strings.Replace(d.Schema, suffixVerify, suffixNext, 1), suffixNext,
		)
		if held, err := isLocked(ctx, db, lockBuilds, lockOf(base)); err != nil || held {
			return "it is being built", err
		}
	case KindOtherVersion:
		for _, space := range []int32{lockServing, lockSpace} {
			if held, err := isLocked(ctx, db, space, lockOf(d.Schema)); err != nil || held {
				return "a program of another version serves from it", err
			}
		}
	}
	return "", nil
}

// Drop drops every schema of read models that nobody uses: those that rebuilds have taken the place
// of, those of programs of other versions that do not run any more, and what was cut off. It gives
// all of them, with what it could not drop and why. The one in use is never among them.
func (c *Control) Drop(ctx context.Context) (all []Droppable, err error) {
	err = c.with(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		if all, err = c.beside(ctx, conn); err != nil {
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

// dropUnused drops a schema, unless somebody has begun to use it.
func dropUnused(ctx context.Context, conn *pgx.Conn, d Droppable) (kept string, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// No program begins with it meanwhile.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::int, $2::int)", lockSpace, lockInstall); err != nil {
			return err
		}
		if kept, err = keptBy(ctx, tx, d); err != nil || kept != "" {
			return err
		}
		return forget(ctx, tx, d.Schema)
	})
	const noLock = "55P03"
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == noLock {
		return "somebody still reads from it; try again", nil
	}
	return kept, err
}

// forgetSchema drops a schema that has no use any more, and what is recorded about it.
func forgetSchema(ctx context.Context, conn *pgx.Conn, schema string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return forget(ctx, tx, schema) })
}

// forgetLimit bounds how long whoever still reads from a schema is waited for.
const forgetLimit = 10 * time.Second

func forget(ctx context.Context, tx pgx.Tx, schema string) error {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", forgetLimit.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{
		schema,
	}.Sanitize()+" CASCADE"); err != nil {
		return fmt.Errorf("drop the schema %s: %w", schema, err)
	}
	return query.New(tx).ForgetSchema(ctx, schema)
}
