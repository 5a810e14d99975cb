package portal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/httpapi/portal"
	"hubcloud/projections/schema"
)

// A search of 500 hubs with 5,000 devices takes at most 100 ms, the page and all. The fastest of some
// counts: other tests use the processors and the database too.
func TestSearchIsFast(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, func(cfg *portal.Config) { cfg.Reported = w.Backend.Store }).signIn(olga)
	w.Env.WithConn(t, schema.Name(), func(conn *pgx.Conn) {
		for _, statement := range []string{
			`INSERT INTO checkpoints (projection, built) VALUES ('devices/0', true) ON CONFLICT DO NOTHING`,
			`INSERT INTO hubs SELECT (jsonb_populate_record(h, jsonb_build_object(
				'id', left(h.id, 14) || lpad(n::text, 4, '0'), 'name', 'Floor ' || n))).*
			FROM hubs h, generate_series(1, 500) n WHERE h.id = '%s'`,
			`INSERT INTO reported_hubs SELECT id, 0, epoch, 0, 0, now(), now(), 0, 0, 0, 0, true, '', true, 0, 0
			FROM hubs WHERE org_id = '%s'`,
			`INSERT INTO reported_devices SELECT id, n, 'Thermostat ' || n, 'Maker', 'Model ' || n,
				true, now(), 0, 0, 0, 0, 0, true, 0, 0, 0, 0, 0, 0, 0, true
			FROM hubs, generate_series(1, 10) n WHERE org_id = '%s' AND name <> 'Floor 7'`,
		} {
			value := w.mill.ID
			if strings.Contains(statement, "h.id") {
				value = string(w.hub)
			}
			if strings.Contains(statement, "%s") {
				statement = fmt.Sprintf(statement, value)
			}
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	})
	b.get(inOne+"/search?q=floor+7", 200) // a hub without devices, whose name has all words
	// The fastest of many tells what a search takes, whatever else the machine does.
	const limit = 100 * time.Millisecond
	fastest := time.Hour
	for n := 0; n < 15 || n < 200 && fastest > limit; n++ {
		begun := time.Now()
		page := b.get(fmt.Sprintf("%s/search?q=floor+49%d+model", inOne, n%10), 200)
		fastest = min(fastest, time.Since(begun))
		if !strings.Contains(page, "Thermostat") {
			t.Fatalf("got %s, want the devices of a floor", page)
		}
	}
	t.Logf("the fastest search took %v", fastest)
	if fastest > limit {
		t.Errorf("the fastest search took %v, want at most %v", fastest, limit)
	}
}
