package bench

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

type listSize struct {
	items, readers, rounds int
	during                 time.Duration
}

// measureLists compares the pages per second of the API's lists of sites and hubs with the queries
// per second of the same SQL.
func measureLists(b *bench) {
	n := size(b, listSize{50, 8, 5, 2 * time.Second}, listSize{2, 2, 1, 100 * time.Millisecond})
	s := startService(b, "--log-level", "warn")
	for i := range n.items - 1 { // the tenant has one
		s.NewSite(fmt.Sprintf("Building %d", i))
	}
	release := keep(b, s.hubs(n.items))
	defer release()
	database := startBare(b, roleDatabase, databaseConfig{URL: s.databaseURL(), Readers: n.readers})

	for _, list := range []struct {
		path, query string
		args        map[string]any
	}{
		{"/sites", "Sites", map[string]any{"org_id": s.Org, "after": 0, "row_limit": n.items + 1}},
		{
			"/hubs", "HubsOfOrg",
			map[string]any{"org_id": s.Org, "after": "", "row_limit": n.items + 1},
		},
	} {
		command := queryCommand{During: n.during}
		command.SQL, command.Args = storedQuery(b, list.query, list.args)
		r := row{Measure: "GET /v1" + list.path, Unit: "requests/s", Aim: atLeast(0.6),
			Note: fmt.Sprintf(
				"%d items, %d readers; the limit is the same query through pgx, as often as that "+
					"many connections can",
				n.items, n.readers,
			)}
		requests := [][]byte{[]byte(s.get(list.path))}
		for round := range n.rounds {
			done := b.profile(s.process, "GET "+list.path[1:], n.during, round == 0)
			r.Values = append(r.Values, readPages(b, s.Service.HTTP, n.readers, n.during, requests))
			done()
			var limit queryResult
			database.do("/query", command, &limit)
			if limit.Rows != n.items {
				b.Fatalf("query %s: got %d rows, want %d", list.query, limit.Rows, n.items)
			}
			r.Limits = append(r.Limits, limit.PerSecond)
		}
		b.report.add(r)
	}
}

// databaseURL returns the address of the service's private database, from a file of its server.
func (s *service) databaseURL() string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Dir, "postgres", "*", "postmaster.pid"))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("find the database server: %v, %v", found, err)
	}
	lines := strings.Split(string(read(s.t, found[0])), "\n")
	const portLine, socketLine = 3, 4
	query := url.Values{
		"host":    {lines[socketLine]},
		"port":    {lines[portLine]},
		"user":    {"hubcloud"},
		"sslmode": {"disable"},
	}
	return (&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: query.Encode()}).String()
}

var parameter = regexp.MustCompile(`@[a-z_]+`)

// storedQuery returns a query from the source of the read models, and its arguments in order.
func storedQuery(b *bench, name string, named map[string]any) (sql string, args []json.RawMessage) {
	source, err := os.ReadFile("../../projections/schema/sql/queries.sql")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(source), "-- name: "+name+" :many\n")
	if !ok {
		b.Fatalf("query %s not found", name)
	}
	sql, _, _ = strings.Cut(rest, ";")
	sql = parameter.ReplaceAllStringFunc(sql, func(p string) string {
		value, ok := named[p[1:]]
		if !ok {
			b.Fatalf("query %s: argument %s is missing", name, p)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			b.Fatal(err)
		}
		args = append(args, raw)
		return fmt.Sprintf("$%d", len(args))
	})
	return sql, args
}
