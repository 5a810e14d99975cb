package rebuild_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/projectionstest"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

// Drop keeps schemas that are served from or built, and the one in use.
func TestDrop(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	c := w.Control(t)
	streamstest.Must(t, c.Rebuild(t.Context(), nil))
	const served, unserved = "hubcloud_0123456789ab", "hubcloud_ba9876543210"
	building := schema.NextName(s.Schema())
	projectionstest.Execute(
		t,
		w.URL,
		"CREATE SCHEMA "+served+"; CREATE SCHEMA "+unserved+"; CREATE SCHEMA "+building+
			"; CREATE SCHEMA hubcloud_of_mine; "+
			"CREATE TABLE "+unserved+".orgs AS SELECT generate_series(1, 10000)",
	)
	w.WithConn(t, "public", func(conn *pgx.Conn) {
		streamstest.Must(t, schema.ServingLock(served).Share(t.Context(), conn))
		if taken, err := schema.BuildLock(s.Schema()).Try(t.Context(), conn); err != nil ||
			!taken {
			t.Fatalf("take the lock of builds: %v, %v", taken, err)
		}
		all, err := c.Drop(t.Context())
		streamstest.Must(t, err)
		kept := map[string]bool{}
		for _, d := range all {
			kept[d.Schema] = d.Kept != ""
			if d.Schema == unserved && (d.Bytes < 100_000 || d.Kind != rebuild.KindOtherVersion) {
				t.Errorf("got %+v, want a schema of another version with its size", d)
			}
		}
		if len(all) != 4 || !kept[served] || !kept[building] || kept[unserved] {
			t.Errorf("Drop() = %+v, want %s and %s kept", all, served, building)
		}
	})
	want := []string{served, s.Schema(), building, "hubcloud_of_mine"}
	slices.Sort(want)
	got := w.Schemas(t)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("schemas after Drop are %v, want %v", got, want)
	}
	streamstest.Eventually(t, "all of them can be dropped", func() bool {
		_, err := c.Drop(t.Context())
		return err == nil && len(w.Schemas(t)) == 2
	})
	projectionstest.Await(t, s, w.AddSite(t, org, 2))
}
