package projectionstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

// WithConn runs fn on a connection that finds the tables of a schema.
func (e *Env) WithConn(t testing.TB, name string, fn func(conn *pgx.Conn)) {
	t.Helper()
	config, err := schema.PoolConfig(e.URL, name)
	streamstest.Must(t, err)
	err = schema.WithConn(t.Context(), config.ConnConfig, func(conn *pgx.Conn) error {
		fn(conn)
		return nil
	})
	streamstest.Must(t, err)
}

// Content returns the rows of the directory's tables in a schema, as text.
func (e *Env) Content(t testing.TB, schema string) (content string) {
	t.Helper()
	e.WithConn(t, schema, func(conn *pgx.Conn) { content = Dump(t, conn) })
	return content
}

// Dump returns the rows of the directory's tables that conn finds, as text.
func Dump(t testing.TB, conn *pgx.Conn) string {
	t.Helper()
	var all strings.Builder
	for _, table := range schema.TablesOf(schema.Directory) {
		rows, err := conn.Query(
			t.Context(),
			fmt.Sprintf(`SELECT x::text FROM %s x ORDER BY x::text COLLATE "C"`, table.Name),
		)
		streamstest.Must(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		streamstest.Must(t, err)
		fmt.Fprintf(&all, "%s:\n%s\n", table.Name, strings.Join(lines, "\n"))
	}
	return all.String()
}

// RowCount returns how many rows a table has.
func (e *Env) RowCount(t testing.TB, schema, table string) (n int) {
	t.Helper()
	e.WithConn(t, schema, func(conn *pgx.Conn) {
		sql := "SELECT count(*) FROM " + pgx.Identifier{table}.Sanitize()
		streamstest.Must(t, conn.QueryRow(t.Context(), sql).Scan(&n))
	})
	return n
}

// Schemas returns the names of the schemas of read models.
func (e *Env) Schemas(t testing.TB) (names []string) {
	t.Helper()
	const sql = `SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'hubcloud\_%' ORDER BY nspname`
	e.WithConn(t, "public", func(conn *pgx.Conn) {
		rows, err := conn.Query(t.Context(), sql)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		streamstest.Must(t, err)
	})
	return names
}
