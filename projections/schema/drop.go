package schema

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// dropTimeout bounds the wait of DropIn for sessions that read from the schema.
const dropTimeout = 10 * time.Second

// Drop drops a schema, if it exists, and what the schema `hubcloud` records about it.
func Drop(ctx context.Context, conn *pgx.Conn, schema string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return DropIn(ctx, tx, schema) })
}

// DropIn is Drop within a transaction. It fails with CodeLockNotAvailable if another
// session still reads from the schema after 10 s.
func DropIn(ctx context.Context, tx pgx.Tx, schema string) error {
	limit := fmt.Sprintf("SET LOCAL lock_timeout = %d", dropTimeout.Milliseconds())
	if _, err := tx.Exec(ctx, limit); err != nil {
		return err
	}
	drop := "DROP SCHEMA IF EXISTS " + pgx.Identifier{schema}.Sanitize() + " CASCADE"
	if _, err := tx.Exec(ctx, drop); err != nil {
		return fmt.Errorf("drop the schema %s: %w", schema, err)
	}
	return New(tx).ForgetSchema(ctx, schema)
}

//go:embed sql/schemas_beside.sql
var schemasBeside string

// DropUnfinished drops what earlier builds have left beside a schema. The caller must hold the
// schema's BuildLock.
func DropUnfinished(ctx context.Context, conn *pgx.Conn, schema string) error {
	rows, err := conn.Query(ctx, schemasBeside, schema+infixNext, schema+infixVerify)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := Drop(ctx, conn, name); err != nil {
			return err
		}
	}
	return nil
}
