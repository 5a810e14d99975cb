package bench

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// copyCommand copies every row of the read models into new tables. With Keys these tables have all
// keys and indexes.
type copyCommand struct{ Keys bool }

type copyResult struct {
	Rows    int64
	Seconds float64
}

// copy reads the rows into memory, creates the tables, and measures only the copying.
func (d *bareDatabase) copy(c copyCommand) (copyResult, error) {
	ctx := context.Background()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return copyResult{}, err
	}
	defer conn.Release()
	var schema string
	if err := conn.QueryRow(ctx, "SELECT name FROM hubcloud.schemas WHERE state = 'live'").Scan(
		&schema,
	); err != nil {
		return copyResult{}, err
	}
	found, err := conn.Query(ctx, "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
	if err != nil {
		return copyResult{}, err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		return copyResult{}, errors.Join(err, errors.New("there are no tables"))
	}
	const own = "bare_copy"
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+own); err != nil {
		return copyResult{}, err
	}
	defer conn.Exec(ctx, "DROP SCHEMA "+own+" CASCADE")
	including := "DEFAULTS"
	if c.Keys {
		including = "ALL"
	}
	content := make([]bytes.Buffer, len(tables))
	for i, table := range tables {
		from, to := pgx.Identifier{schema, table}.Sanitize(), pgx.Identifier{own, table}.Sanitize()
		if _, err := conn.Conn().PgConn().CopyTo(
			ctx, &content[i], "COPY "+from+" TO STDOUT (FORMAT binary)",
		); err != nil {
			return copyResult{}, err
		}
		if _, err := conn.Exec(
			ctx, "CREATE TABLE "+to+" (LIKE "+from+" INCLUDING "+including+")",
		); err != nil {
			return copyResult{}, err
		}
	}
	var result copyResult
	began := time.Now()
	for i, table := range tables {
		copied, err := conn.Conn().
			PgConn().
			CopyFrom(ctx, &content[i], "COPY "+pgx.Identifier{
				own, table,
			}.Sanitize()+" FROM STDIN (FORMAT binary)")
		if err != nil {
			return copyResult{}, err
		}
		result.Rows += copied.RowsAffected()
	}
	result.Seconds = time.Since(began).Seconds()
	return result, nil
}
