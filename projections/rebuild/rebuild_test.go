package rebuild_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
	"hubcloud/test/population"
)

// populate fills the directory with organizations that have existed for a while.
func populate(t testing.TB, w *projectionstest.Env, events int) population.Population {
	t.Helper()
	made, err := population.Write(
		t.Context(), w.Conns, population.Config{Orgs: 20, Events: events, Seed: 1},
	)
	streamstest.Must(t, err)
	return made
}

// A rebuild, in loads of any size, and a first build make the same rows as applying the events one
// after the other.
func TestRebuildMakesTheSameRows(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	made := populate(t, w, 3000)
	stop := w.Project(t, s).Stop
	projectionstest.Await(t, s, made.Head)
	stop()
	want := w.Content(t, s.Schema())
	c := w.Control(t)
	for _, rows := range []int{0, 500, 60} {
		c := w.ControlLoading(t, rows)
		streamstest.Must(t, c.Rebuild(t.Context(), nil))
		if got := w.Content(t, s.Schema()); got != want {
			t.Errorf("loads of %d rows make:\n%s\none event at a time makes:\n%s", rows, got, want)
		}
	}
	if schemas := w.Schemas(t); len(schemas) != 4 {
		t.Errorf("schemas after three rebuilds: got %v, want four", schemas)
	}
	if all, differences := projectionstest.Verify(t, c); len(differences) > 0 ||
		all[0].Sequence != made.Head ||
		all[0].Rows < 3000 ||
		all[1].Rows == 0 {
		t.Errorf("Verify: got %+v with differences %+v, want none", all, differences)
	}

	fresh := w.WithDatabase(projectionstest.NewDatabase(t, ""))
	first := fresh.OpenStore(t)
	if _, err := first.Sites(t.Context(), domain.Reach{OrgID: org}, 1, ""); !errors.Is(err, schema.ErrBuilding) {
		t.Errorf("Sites before they are complete: got %v, want ErrBuilding", err)
	}
	cfg := fresh.ProjectorConfig(t, first)
	cfg.LoadFrom = 1
	projectionstest.RunProjector(t, cfg)
	projectionstest.Await(t, first, made.Head)
	if got := fresh.Content(t, first.Schema()); got != want {
		t.Errorf("the first build makes:\n%s\none event at a time makes:\n%s", got, want)
	}
	streamstest.Eventually(
		t, "the empty tables are deleted", func() bool { return len(fresh.Schemas(t)) == 1 },
	)
	last := fresh.AddSite(t, org, 1)
	projectionstest.Await(t, first, last)
	if page, err := first.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(page.Data) != 1 {
		t.Errorf("Sites: got %v, %v, want one site", page, err)
	}
}

// Clients read their own writes during repeated rebuilds, some of them interrupted.
func TestClientsReadTheirWritesDuringRebuilds(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	leader, other := w.OpenStore(t), w.OpenStore(t)
	w.Project(t, leader)
	w.Project(t, other)
	projectionstest.Await(t, leader, populate(t, w, 500).Head)
	until, end := context.WithCancel(t.Context())
	defer end()
	var clients sync.WaitGroup
	for n, s := range []*readmodel.Store{leader, other, leader, other} {
		clients.Go(func() {
			for i := 0; until.Err() == nil; i++ {
				id := 1000*(n+1) + i
				seq := w.AddSite(t, org, id)
				projectionstest.Await(t, s, seq)
				if site, err := s.Site(t.Context(), org, projectionstest.SiteID(id)); err != nil ||
					site.ID != projectionstest.SiteID(id) {
					t.Errorf(
						"client %d: Site: got %+v, %v, want the site just created", n, site, err,
					)
					return
				}
				snapshot, err := s.AccessSnapshot(t.Context())
				if err != nil || snapshot.Sequence < seq || len(snapshot.Hubs) == 0 {
					t.Errorf(
						"client %d: %d hubs as of %d after %d, %v", n, len(snapshot.Hubs),
						snapshot.Sequence, seq, err,
					)
					return
				}
			}
		})
	}
	c := w.Control(t)
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
	projectionstest.Await(t, leader, w.Head(t))
	if all, differences := projectionstest.Verify(t, c); len(differences) > 0 {
		t.Errorf("Verify: got %+v with differences %+v, want none", all, differences)
	}
}

// Of two rebuilds at once, one builds and the other follows it. A rebuild whose process has ended
// does not block the next.
func TestTwoRebuildsAtOnce(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	projectionstest.Await(t, s, populate(t, w, 300).Head)
	c := w.Control(t)
	streamstest.Must(t, c.Stop(t.Context(), []string{
		schema.Directory,
	}, "so that the first waits with its switch"))
	held := make(chan rebuild.Progress, 1000)
	first := make(chan error, 1)
	go func() { first <- c.Rebuild(t.Context(), func(p rebuild.Progress) { held <- p }) }()
	for p := range held {
		if p.Phase == rebuild.PhaseHeld {
			break
		}
	}
	followed := make(chan rebuild.Progress, 1000)
	second := make(chan error, 1)
	go func() {
		second <- w.Control(t).Rebuild(t.Context(), func(p rebuild.Progress) { followed <- p })
	}()
	for p := range followed { // the builder records its progress twice a second
		if !p.Followed || p.Purpose != rebuild.PurposeRebuild {
			t.Errorf("progress of the followed build: got %+v", p)
		}
		if p.Head > 0 {
			break
		}
	}
	streamstest.Must(t, c.Resume(t.Context(), []string{schema.Directory}))
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	if schemas := w.Schemas(t); len(schemas) != 2 {
		t.Errorf("schemas after two rebuilds at once: got %v, want two", schemas)
	}

	// The connection that holds the lock is cut, as if its process had died.
	streamstest.Must(t, c.Stop(t.Context(), []string{schema.Directory}, ""))
	held = make(chan rebuild.Progress, 1000)
	go func() { first <- c.Rebuild(t.Context(), func(p rebuild.Progress) { held <- p }) }()
	for p := range held {
		if p.Phase == rebuild.PhaseHeld {
			break
		}
	}
	projectionstest.Execute(
		t,
		w.URL,
		`SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND a.application_name = 'hubcloud projections' AND a.datname = current_database()`,
	)
	if err := <-first; err == nil {
		t.Error("Rebuild returned nil without its lock")
	}
	streamstest.Must(t, c.Resume(t.Context(), []string{schema.Directory}))
	if err := c.Rebuild(t.Context(), nil); err != nil {
		t.Error(err)
	}
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	for _, name := range w.Schemas(t) {
		if _, unfinished := schema.IsUnfinished(name); unfinished {
			t.Errorf("schema %s is left", name)
		}
	}
}

// Read models of another log cannot follow this one. A rebuild repairs that.
func TestRebuildRepairsReadModelsOfAnotherStream(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	for n := range 5 {
		projectionstest.Await(t, s, w.AddSite(t, org, n))
	}
	stop()
	elsewhere := projectionstest.New(t)
	elsewhere.URL = w.URL
	elsewhere.AddSite(t, org, 7)
	elsewhere.Project(t, s)
	streamstest.Eventually(
		t, "stopped",
		func() bool { return errors.Is(s.Ready(t.Context()), directory.ErrReadModelsStopped) },
	)
	c := elsewhere.Control(t)
	if _, err := c.Verify(t.Context(), nil, nil); !errors.Is(err, schema.ErrOtherStream) {
		t.Errorf("Verify: got %v, want ErrOtherStream", err)
	}
	_, err := c.Skip(
		t.Context(), elsewhere.Directory,
		domain.Origin{At: time.Now(), Actor: projectionstest.Operator}, "", 5, "a try",
	)
	if err == nil || !strings.Contains(err.Error(), "no single event stops") {
		t.Errorf("Skip: got %v, want that no single event stops the projection", err)
	}
	streamstest.Must(t, c.Rebuild(t.Context(), nil))
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
	projectionstest.Await(t, s, elsewhere.AddSite(t, org, 8))
	if page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(page.Data) != 2 {
		t.Errorf("Sites: got %v, %v, want both sites", page, err)
	}
}

// Regression: while the database failed to take a build's lock, Rebuild waited for the build of
// another process, again and again.
func TestLockFails(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	projectionstest.Execute(t, w.URL, `CREATE SCHEMA failing;
		CREATE FUNCTION failing.pg_try_advisory_lock(int, int) RETURNS boolean LANGUAGE plpgsql
		AS $$ BEGIN RAISE EXCEPTION 'no locks'; END $$`)
	dial := s.ConnConfig()
	dial.RuntimeParams["search_path"] = "failing, pg_catalog, " + s.Schema()
	control, err := rebuild.New(rebuild.Config{
		Schema: s.Schema(), ConnConfig: dial, Sources: w.Sources(), Logger: projectionstest.Logger(t),
	})
	streamstest.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := control.Rebuild(ctx, nil); err == nil || !strings.Contains(err.Error(), "no locks") {
		t.Errorf("Rebuild: got %v, want the error of the database", err)
	}
}
