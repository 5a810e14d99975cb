package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/projectionstest"
	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { projectionstest.Main(m) }

// The declarations repeat what schema.sql and indexes.sql define. If they differ, a load copies
// into missing columns, a rebuild lacks an index, or a verify compares too little.
func TestDeclarationsMatchTheDefinition(t *testing.T) {
	t.Parallel()
	url := projectionstest.NewDatabase(t, "")
	conn, err := pgx.Connect(t.Context(), url)
	streamstest.Must(t, err)
	defer conn.Close(t.Context())
	create(
		t, conn, "defined", func(tx pgx.Tx) error { return schema.CreateIndexes(t.Context(), tx) },
	)
	create(t, conn, "declared", func(tx pgx.Tx) error {
		for _, table := range schema.Tables() {
			if table.Projection != schema.Directory {
				continue // schema.sql has its key and its indexes
			}
			for _, statement := range append([]string{table.AddKey()}, table.Indexes...) {
				if _, err := tx.Exec(t.Context(), statement); err != nil {
					return fmt.Errorf("%s: %w", statement, err)
				}
			}
		}
		return nil
	})

	const indexes = `SELECT replace(indexdef, schemaname || '.', '') FROM pg_indexes WHERE schemaname = $1`
	defined, declared := texts(t, conn, indexes, "defined"), texts(t, conn, indexes, "declared")
	if !slices.Equal(declared, defined) {
		t.Errorf(
			"declared indexes:\n%s\nwant those of indexes.sql:\n%s", strings.Join(declared, "\n"),
			strings.Join(defined, "\n"),
		)
	}

	const columns = `SELECT table_name || ' ' || column_name || ' ' || CASE data_type WHEN 'ARRAY' THEN ltrim(udt_name, '_') || '[]' ELSE data_type END
		FROM information_schema.columns WHERE table_schema = $1 AND table_name <> 'checkpoints'`
	declared = nil
	for _, table := range schema.Tables() {
		for _, c := range table.Columns {
			declared = append(declared, table.Name+" "+c.Name+" "+c.Type)
		}
	}
	slices.Sort(declared)
	if defined := texts(t, conn, columns, "defined"); !slices.Equal(declared, defined) {
		t.Errorf(
			"declared columns:\n%s\nwant those of schema.sql:\n%s", strings.Join(declared, "\n"),
			strings.Join(defined, "\n"),
		)
	}
}

// create creates the tables in a schema, and then their indexes.
func create(t *testing.T, conn *pgx.Conn, name string, indexes func(tx pgx.Tx) error) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if err := schema.CreateTables(t.Context(), tx, name); err != nil {
			return err
		}
		return indexes(tx)
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// texts returns the result of a query, sorted.
func texts(t *testing.T, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	streamstest.Must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	streamstest.Must(t, err)
	slices.Sort(all)
	return all
}
