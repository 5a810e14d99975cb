package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/test/population"
)

// control opens an operator's view of the read models.
func (w *world) control(t testing.TB) *Control {
	t.Helper()
	c, err := OpenControl(t.Context(), ControlConfig{
		URL: w.url, InstallationID: "test", Directory: w.dir, Presence: w.buckets.Presence,
		Log: testLog(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// populate fills the directory with organizations that have lived for a while.
func (w *world) populate(t testing.TB, events int) population.Population {
	t.Helper()
	made, err := population.Write(
		t.Context(), w.conns, population.Config{Orgs: 20, Events: events, Seed: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (w *world) head(t testing.TB) uint64 {
	t.Helper()
	head, err := w.dir.Head(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// content gives everything that a schema of read models holds, as text.
func (w *world) content(t testing.TB, schema string) string {
	t.Helper()
	config, err := poolConfig(w.url, schema)
	if err != nil {
		t.Fatal(err)
	}
	var all string
	err = onConn(t.Context(), config.ConnConfig, func(conn *pgx.Conn) error {
		all = dump(t, conn)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// schemas names the schemas of read models.
func (w *world) schemas(t testing.TB) (names []string) {
	t.Helper()
	err := w.control(t).with(t.Context(), func(ctx context.Context, conn *pgx.Conn) (err error) {
		rows, err := conn.Query(
			ctx,
			`SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'hubcloud\_%' ORDER BY nspname`,
		)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// verified verifies, and gives the differences.
func verified(t testing.TB, c *Control) (all []Verified, differences []Difference) {
	t.Helper()
	all, err := c.Verify(t.Context(), nil, func(_ string, d Difference) error {
		differences = append(differences, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, differences
}

// However a history is cut into loads, the tables are the same as when its events are applied as
// they come; and so are those that a first start builds at once.
func TestARebuildIsWhatTheEventsSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	made := w.populate(t, 3000)
	stop := w.project(t, s)
	await(t, s, made.Head)
	stop()
	want := w.content(t, s.Schema())
	c := w.control(t)
	for _, rows := range []int{loadRows, 500, 60} {
		c.rows = rows
		if err := c.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got := w.content(t, s.Schema()); got != want {
			t.Errorf("loaded by %d rows:\n%s\none by one:\n%s", rows, got, want)
		}
	}
	if schemas := w.schemas(t); len(schemas) != 4 {
		t.Errorf("three rebuilds leave %v", schemas)
	}
	if all, differences := verified(t, c); len(differences) > 0 || all[0].Sequence != made.Head ||
		all[0].Rows < 3000 ||
		all[1].Rows == 0 {
		t.Errorf("%+v: %+v", all, differences)
	}

	anew := newWorld(t)
	anew.conns, anew.dir, anew.buckets = w.conns, w.dir, w.buckets
	first := anew.open(t)
	first.loadFrom = 1
	if _, err := first.Sites(t.Context(), org, 1, ""); !errors.Is(err, ErrBuilding) {
		t.Errorf("before they are complete: %v", err)
	}
	anew.project(t, first)
	await(t, first, made.Head)
	if got := anew.content(t, first.Schema()); got != want {
		t.Errorf("built at once:\n%s\none by one:\n%s", got, want)
	}
	within(t, "the empty tables are gone", func() bool { return len(anew.schemas(t)) == 1 })
	last := anew.site(t, org, 1)
	await(t, first, last)
	if page, err := first.Sites(t.Context(), org, 50, ""); err != nil || len(page.Data) != 1 {
		t.Errorf("%v, %v", page, err)
	}
}

// Whoever reads and writes while read models are switched, again and again and some of them cut
// off, reads what was written.
func TestReadersNoticeNothingOfASwitch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	leader, other := w.open(t), w.open(t)
	w.project(t, leader)
	w.project(t, other)
	await(t, leader, w.populate(t, 500).Head)
	until, end := context.WithCancel(t.Context())
	defer end()
	var clients sync.WaitGroup
	for n, s := range []*Store{leader, other, leader, other} {
		clients.Go(func() {
			for i := 0; until.Err() == nil; i++ {
				id := 1000*(n+1) + i
				seq := w.site(t, org, id)
				await(t, s, seq)
				if site, err := s.Site(t.Context(), org, siteID(id)); err != nil ||
					site.ID != siteID(id) {
					t.Errorf("client %d: %+v, %v", n, site, err)
					return
				}
				taken, err := s.snapshot(t.Context())
				if err != nil || taken.sequence < seq || len(taken.hubs) == 0 {
					t.Errorf(
						"client %d: %d hubs as of %d after %d, %v", n, len(taken.hubs),
						taken.sequence, seq, err,
					)
					return
				}
			}
		})
	}
	c := w.control(t)
	for round := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		if round%2 == 1 { // at any moment
			time.AfterFunc(time.Duration(round)*15*time.Millisecond, cancel)
		}
		if err := c.Rebuild(ctx, nil); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		cancel()
	}
	end()
	clients.Wait()
	await(t, leader, w.head(t))
	if all, differences := verified(t, c); len(differences) > 0 {
		t.Errorf("%+v: %+v", all, differences)
	}
}

// Of two rebuilds at once one works, and the other is done when that one is. One whose process is
// gone is in nobody's way.
func TestTwoRebuildsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	await(t, s, w.populate(t, 300).Head)
	c := w.control(t)
	if err := c.Stop(t.Context(), []string{
		DirectoryProjection,
	}, "so that the first waits with its switch"); err != nil {
		t.Fatal(err)
	}
	held := make(chan BuildProgress, 1000)
	first := make(chan error, 1)
	go func() { first <- c.Rebuild(t.Context(), func(p BuildProgress) { held <- p }) }()
	for p := range held {
		if p.Phase == PhaseHeld {
			break
		}
	}
	followed := make(chan BuildProgress, 1000)
	second := make(chan error, 1)
	go func() { second <- w.control(t).Rebuild(t.Context(), func(p BuildProgress) { followed <- p }) }()
	if p := <-followed; !p.Followed || p.Purpose != PurposeRebuild || p.Head == 0 {
		t.Errorf("follows %+v", p)
	}
	if err := c.Resume(t.Context(), []string{DirectoryProjection}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	if schemas := w.schemas(t); len(schemas) != 2 {
		t.Errorf("two rebuilds at once leave %v", schemas)
	}

	// The connection that holds the lock is cut, as if its process had died.
	if err := c.Stop(t.Context(), []string{DirectoryProjection}, ""); err != nil {
		t.Fatal(err)
	}
	held = make(chan BuildProgress, 1000)
	go func() { first <- c.Rebuild(t.Context(), func(p BuildProgress) { held <- p }) }()
	for p := range held {
		if p.Phase == PhaseHeld {
			break
		}
	}
	execute(t, w.url, fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_locks
		WHERE locktype = 'advisory' AND classid = %d AND objid = %d AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
		lockBuilds, uint32(lockOf(s.Schema()))))
	if err := <-first; err == nil {
		t.Error("it switched without the lock")
	}
	if err := c.Resume(t.Context(), []string{DirectoryProjection}); err != nil {
		t.Fatal(err)
	}
	if err := c.Rebuild(t.Context(), nil); err != nil {
		t.Error(err)
	}
	await(t, s, w.site(t, org, 1))
	for _, schema := range w.schemas(t) {
		if strings.Contains(schema, suffixNext) {
			t.Errorf("%s is left", schema)
		}
	}
}

// Read models that were made from another log cannot follow this one; a rebuild mends it.
func TestARebuildMendsReadModelsOfAnotherStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	stop := w.project(t, s)
	for n := range 5 {
		await(t, s, w.site(t, org, n))
	}
	stop()
	elsewhere := newWorld(t)
	elsewhere.url = w.url
	elsewhere.site(t, org, 7)
	elsewhere.project(t, s)
	within(
		t, "stopped",
		func() bool { return errors.Is(s.Ready(t.Context()), directory.ErrStandingStill) },
	)
	c := elsewhere.control(t)
	if _, err := c.Verify(t.Context(), nil, nil); !errors.Is(err, ErrOtherStream) {
		t.Errorf("verified: %v", err)
	}
	_, _, err := c.Skip(
		t.Context(), elsewhere.dir, domain.Origin{At: time.Now(), Actor: byOperator}, "", 5,
		"a try",
	)
	if !errors.Is(err, ErrNotSkippable) {
		t.Errorf("skipped: %v", err)
	}
	if err := c.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	within(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
	await(t, s, elsewhere.site(t, org, 8))
	if page, err := s.Sites(t.Context(), org, 50, ""); err != nil || len(page.Data) != 2 {
		t.Errorf("%v, %v", page, err)
	}
}

// An event stopped a projection while a rebuild put other read models in the place of those that it
// stopped in. The stop was recorded in the new ones, which it is not about, and they stood still
// until the next event.
func TestAStopIsNotRecordedInOtherReadModels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	end := w.project(t, s)
	await(t, s, w.site(t, org, 1))
	last := w.site(t, org, 2)
	await(t, s, last)
	end()
	late := newLine(s, &directorySource{log: w.dir}, &s.directory, w.dir, 0, true)
	stale := &StoppedError{
		Projection: DirectoryProjection,
		Sequence:   last,
		Type:       "site.created",
		Err:        ErrOtherStream,
	}
	for name, at := range map[string]checkpoint{
		"another sequence": {last - 1, ""}, "another event": {last, "of another stream"},
	} {
		if late.stop(t.Context(), at, stale) {
			t.Errorf("%s: the projection is to wait", name)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := testutil.ToFloat64(s.metrics.stopped.WithLabelValues(DirectoryProjection)); got != 0 {
		t.Errorf("the metric says %v", got)
	}
	// A stop by what the read models have by now, as a program without this check left it, does not
	// last.
	execute(
		t,
		w.url,
		fmt.Sprintf(
			"UPDATE %s.checkpoints SET stopped_sequence = %d, stopped_error = 'stale' WHERE projection = 'directory'",
			s.Schema(), last-1,
		),
	)
	if err := s.Ready(t.Context()); !errors.Is(err, directory.ErrStandingStill) {
		t.Fatal(err)
	}
	w.project(t, s)
	within(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
}

// What nobody uses is dropped; what somebody uses, or builds, is not, and never what is in use.
func TestDrop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	await(t, s, w.site(t, org, 1))
	c := w.control(t)
	if err := c.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	const served, unserved = "hubcloud_0123456789ab", "hubcloud_ba9876543210"
	building := s.Schema() + suffixNext + "00000000"
	execute(
		t,
		w.url,
		"CREATE SCHEMA "+served+"; CREATE SCHEMA "+unserved+"; CREATE SCHEMA "+building+"; CREATE SCHEMA hubcloud_of_mine; "+
			"CREATE TABLE "+unserved+".orgs AS SELECT generate_series(1, 10000)",
	)
	err := c.with(t.Context(), func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1::int, $2::int), "+
			"pg_advisory_lock($3::int, $4::int)",
			lockServing, lockOf(served), lockBuilds, lockOf(s.Schema())); err != nil {
			return err
		}
		all, err := c.Drop(ctx)
		if err != nil {
			return err
		}
		kept := map[string]bool{}
		for _, d := range all {
			kept[d.Schema] = d.Kept != ""
			if d.Schema == unserved && (d.Bytes < 100_000 || d.Kind != KindOtherVersion) {
				t.Errorf("%+v", d)
			}
		}
		if len(all) != 4 || !kept[served] || !kept[building] || kept[unserved] {
			t.Errorf("dropped %+v", all)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.schemas(t); !slices.Equal(
		got, []string{served, s.Schema(), building, "hubcloud_of_mine"},
	) &&
		!slices.Equal(got, []string{served, "hubcloud_of_mine", s.Schema(), building}) {
		t.Errorf("left are %v", got)
	}
	within(t, "all of them can be dropped", func() bool {
		_, err := c.Drop(t.Context())
		return err == nil && len(w.schemas(t)) == 2
	})
	await(t, s, w.site(t, org, 2))
}
