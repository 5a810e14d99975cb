package operators

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/population"
)

// TestTwoDefinitions runs a second binary, with other definitions of the read models, on the broker
// and database of the first: "built beside the old one while the old binary serves, switched when
// caught up". Clients of the first binary must not notice, even when the second is killed. Each
// binary answers from its own read models, with what was just written through it.
func TestTwoDefinitions(t *testing.T) {
	t.Parallel()
	size := sizeOf(t, 2_000, 6)
	newer := newerBinary(t)
	older := harness.Start(t, unlimited...)
	made := populate(t, older, size, 1)
	half := size.clients / 2
	first := startCrowd(t, made.Orgs[:half], older)
	first.await(5)

	// The new binary is killed while it builds its read models, and continues.
	next := older.ReplicaOf(newer, append([]string{"--roles", "api,projector"}, unlimited...)...)
	next.Kill()
	next.Begin()
	ready := "http://" + next.Admin + "/readyz"
	streamstest.EventuallyWithin(t, 5*time.Minute, "the newer binary is ready", func() bool {
		answer, err := http.Get(ready)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	first.await(10)
	second := startCrowd(t, made.Orgs[half:size.clients], next)
	second.await(12)
	first.await(12)
	first.close()
	second.close()
	t.Logf("older: %s", first.report())
	t.Logf("newer: %s", second.report())

	schemas := liveSchemas(t, older)
	if len(schemas) != 2 || schemas[0] == schemas[1] {
		t.Fatalf("live schemas: got %v, want two", schemas)
	}
	// Each binary has the writes of the other once its read models have caught up.
	for _, s := range []*harness.Service{older, next} {
		for _, client := range slices.Concat(first.clients, second.clients) {
			client.readFrom = harness.NewClient(t, s.Base(), client.org.Key)
			awaitEqual(t, older, schemas)
			if !client.readSites() || !client.readHubs() {
				t.Fatalf("the service at %s does not have all writes", s.Base())
			}
		}
	}
	// Clients switch to the other binary, as in an upgrade.
	orgs := func(c *crowd) (all []population.Org) {
		for _, client := range c.clients {
			all = append(all, client.org)
		}
		return all
	}
	third, fourth := startCrowd(t, orgs(first), next), startCrowd(t, orgs(second), older)
	third.await(5)
	fourth.await(5)
	third.close()
	fourth.close()
}

// newerBinary builds a binary whose table of sites has one more column, and returns its path.
func newerBinary(t *testing.T) string {
	t.Helper()
	const file = "projections/schema/sql/schema.sql"
	definition, err := os.ReadFile("../../" + file)
	harness.Must(t, err)
	changed := bytes.Replace(
		definition, []byte("CREATE TABLE sites (\n"),
		[]byte("CREATE TABLE sites (\n    remark text NOT NULL DEFAULT 'none',\n"), 1,
	)
	if bytes.Equal(changed, definition) {
		t.Fatalf("%s: table of sites not found", file)
	}
	return harness.BuildWith(t, map[string][]byte{file: changed})
}

// liveSchemas returns the schemas in the state live, the oldest first.
func liveSchemas(t *testing.T, s *harness.Service) []string {
	t.Helper()
	return query[string](
		t, s, "SELECT name FROM hubcloud.schemas WHERE state = 'live' ORDER BY created_at",
	)
}

// awaitEqual waits until the read models of all schemas have the same sequence.
func awaitEqual(t *testing.T, s *harness.Service, schemas []string) {
	t.Helper()
	streamstest.Eventually(t, "both schemas have the same sequence", func() bool {
		var at []int64
		for _, schema := range schemas {
			table := pgx.Identifier{schema, "checkpoints"}.Sanitize()
			sql := "SELECT sequence FROM " + table + " WHERE projection = 'directory'"
			at = append(at, query[int64](t, s, sql)...)
		}
		return slices.Min(at) == slices.Max(at)
	})
}

// query returns one column of a query on the service's database.
func query[T any](t *testing.T, s *harness.Service, sql string) []T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL(t, s))
	harness.Must(t, err)
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}
