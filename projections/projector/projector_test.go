package projector_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/projections/cluster"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

func TestUnreadableEventStopsItsProjection(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	projecting := w.Project(t, s)
	before := w.AddSite(t, org, 1)
	projectionstest.Await(t, s, before) // complete
	unknown := fmt.Appendf(
		nil,
		`{"id":%q,"type":"site.painted","v":1,"at":"2026-01-02T03:04:05Z","actor":{"kind":"operator"},"data":{}}`,
		ulid.Make(),
	)
	bad := w.StoreRaw(t, streams.SiteSubject(org, projectionstest.SiteID(1)), unknown)
	w.AddSite(t, org, 2)
	stopped := projectionstest.AwaitStopped(t, s, schema.Directory, bad)
	if stopped.Type != "site.painted" || !strings.Contains(stopped.Error(), "unknown event") {
		t.Errorf("stopped by %v, want an unknown event site.painted", stopped)
	}
	status := w.Status(t, s)
	if len(status) != 4 || status[0].Name != schema.Directory ||
		status[0].State != schema.StateStopped ||
		status[0].Sequence != before ||
		status[0].Head != bad+1 ||
		status[0].Lag != 2 ||
		status[0].Stopped.Sequence != bad {
		t.Errorf("status: got %+v, want the directory stopped with a lag of 2", status)
	}
	is := func(name string, want float64) bool {
		return projecting.MetricIs(t, name, schema.Directory, want)
	}
	streamstest.Eventually(t, "the metrics show the stop and the lag", func() bool {
		seconds, ok := projecting.Metric(t, "lag_seconds", schema.Directory)
		return ok && seconds > 0 && is("stopped", 1) && is("lag_events", 2) &&
			is("head_sequence", float64(bad+1)) &&
			is("sequence", float64(before))
	})
	// Events before it are applied, later ones are not, and the other projection continues.
	page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, "")
	if err != nil || len(page.Data) != 1 {
		t.Errorf("Sites: got %v, %v, want one site", page, err)
	}
	w.PutPresence(
		t, domain.Presence{HubID: projectionstest.HubID(1), Online: true, Since: time.Now()},
	)
	streamstest.Eventually(t, "presence continues", func() bool {
		status := w.Status(t, s)
		return status[1].Sequence == 1 && status[1].State == schema.StateRunning
	})
}

// patched is a directory with one event changed while on is set.
type patched struct {
	projector.Directory
	seq   uint64
	patch func(*directory.Recorded)
	on    atomic.Bool
}

func (p *patched) Follow(
	ctx context.Context, after uint64, fn func([]directory.Recorded) error,
) error {
	return p.Directory.Follow(ctx, after, func(batch []directory.Recorded) error {
		for i := range batch {
			if batch[i].Seq == p.seq && p.on.Load() {
				p.patch(&batch[i])
			}
		}
		return fn(batch)
	})
}

func TestStoppedProjectionGoesOnOnceTheEventCanBeApplied(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	first := w.AddSite(t, org, 1)
	for n := range 20 {
		w.AddHub(t, org, n, 1)
	}
	last := w.AddSite(t, org, 2)
	for name, patch := range map[string]func(*directory.Recorded){
		"unreadable": func(r *directory.Recorded) { r.Fact, r.Err = nil, domain.ErrUnknownEvent },
		// The database rejects these.
		"an unknown hub": func(r *directory.Recorded) {
			r.Fact = domain.HubMoved{
				HubID: projectionstest.HubID(77), OrgID: org, SiteID: projectionstest.SiteID(1),
			}
		},
		"a hub of another organization": func(r *directory.Recorded) {
			r.Fact = domain.HubMoved{
				HubID: projectionstest.HubID(0), OrgID: other, SiteID: projectionstest.SiteID(1),
			}
		},
		"a site that exists": func(r *directory.Recorded) {
			r.Fact = domain.SiteCreated{
				OrgID: org, SiteID: projectionstest.SiteID(1), Name: "again",
			}
		},
		"a text that cannot be stored": func(r *directory.Recorded) {
			r.Fact = domain.SiteRenamed{
				OrgID: org, SiteID: projectionstest.SiteID(1), Name: "a\x00b",
			}
		},
		"an unknown member": func(r *directory.Recorded) {
			r.Fact = domain.MemberRoleChanged{
				OrgID: org, MemberID: projectionstest.MemberID(1), Role: domain.RoleAdmin,
			}
		},
		"a removal of an unknown member": func(r *directory.Recorded) {
			r.Fact = domain.MemberRemoved{
				OrgID: org, MemberID: projectionstest.MemberID(1),
			}
		},
		"an unknown invitation": func(r *directory.Recorded) {
			r.Fact = projectionstest.MemberInvited(
				org, 2, time.Now(), projectionstest.InvitationID(1),
			)
		},
		"a key without a hash": func(r *directory.Recorded) {
			r.Fact = domain.KeyCreated{
				KeyID: "k", OrgID: org,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, statement := range []string{
				"TRUNCATE orgs, members, people, activity, invitations, sites, hubs, " +
					"device_labels, api_keys",
				"UPDATE checkpoints SET sequence = 0, event_id = '', built = false, " +
					"stopped_sequence = NULL, stopped_error = NULL WHERE projection = 'directory'",
			} {
				projectionstest.Execute(t, w.URL, "SET search_path = "+s.Schema()+"; "+statement)
			}
			dir := &patched{Directory: w.Directory, seq: first + 10, patch: patch}
			dir.on.Store(true)
			cfg := w.ProjectorConfig(t, s)
			cfg.Directory = dir
			defer projectionstest.RunProjector(t, cfg).Stop()
			projectionstest.AwaitStopped(t, s, schema.Directory, first+10)
			if status := w.Status(t, s); status[0].Sequence != first+9 {
				t.Errorf("status: got %+v, want the checkpoint before the event", status)
			}
			dir.on.Store(false)
			projectionstest.Await(t, s, last)
			streamstest.Eventually(
				t, "ready again", func() bool { return s.Ready(t.Context()) == nil },
			)
			if site, err := s.Site(t.Context(), org, projectionstest.SiteID(1)); err != nil ||
				site.HubCount != 20 ||
				site.Name != "Site 1" {
				t.Errorf("Site: got %+v, %v, want 20 hubs and the first name", site, err)
			}
		})
	}
}

func TestUnreadablePresenceStopsOnlyItsProjection(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	w.Project(t, s)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	w.PutPresence(
		t, domain.Presence{HubID: projectionstest.HubID(1), Online: true, Since: time.Now()},
	)
	w.PutPresenceValue(t, projectionstest.HubID(2), []byte("no presence"))
	projectionstest.AwaitStopped(t, s, schema.Presence, 2)
	projectionstest.Await(t, s, w.AddSite(t, org, 2))
	// The bucket keeps one value a hub: a new value removes the bad one.
	w.PutPresence(
		t, domain.Presence{HubID: projectionstest.HubID(2), Online: true, Since: time.Now()},
	)
	streamstest.Eventually(t, "ready again", func() bool { return s.Ready(t.Context()) == nil })
}

func TestReadModelsAreReadyOnceTheyAreComplete(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	last := w.AddSite(t, org, 1)
	if err := s.Ready(t.Context()); !errors.Is(err, schema.ErrBuilding) {
		t.Errorf("Ready before anything is projected: got %v, want ErrBuilding", err)
	}
	stop := w.Project(t, s).Stop
	projectionstest.Await(t, s, last)
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
	stop()
	// A later process finds them complete, also while it is behind.
	w.AddSite(t, org, 2)
	if err := w.OpenStore(t).Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// terminateSessions runs SQL on a connection of its own.
func terminateSessions(ctx context.Context, config *pgx.ConnConfig, sql string) error {
	return schema.WithConn(ctx, config, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	first, second := w.OpenStore(t), w.OpenStore(t)
	projectingFirst := w.Project(t, first)
	projectionstest.Await(t, first, w.AddSite(t, org, 1))
	streamstest.Eventually(
		t, "the first projects",
		func() bool { return projectingFirst.MetricIs(t, "leading", "", 1) },
	)
	projectingSecond := w.Project(t, second)

	projectingFirst.Stop()
	for _, name := range []string{"sequence", "lag_events"} {
		if value, ok := projectingFirst.Metric(t, name, schema.Directory); ok {
			t.Errorf("after Stop the metric %s is %v, want no series", name, value)
		}
	}
	if !projectingFirst.MetricIs(t, "leading", "", 0) {
		t.Error("after Stop the metric leading is not 0")
	}
	begun := time.Now()
	projectionstest.Await(t, second, w.AddSite(t, org, 2))
	t.Logf("taken over %s after the first has ended", time.Since(begun))
	if !projectingSecond.MetricIs(t, "leading", "", 1) {
		t.Error("the second projector does not lead")
	}

	// The second loses its connections and the first runs again: whichever leads, nothing is
	// applied twice.
	w.Project(t, first)
	stopKilling := projectionstest.Background(t, "the killer", func(ctx context.Context) error {
		for ctx.Err() == nil {
			err := terminateSessions(
				ctx,
				first.ConnConfig(),
				`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND query NOT LIKE '%Sites%'`,
			)
			if err != nil && ctx.Err() == nil {
				return nil // the killers met each other
			}
			schema.Pause(ctx, 100*time.Millisecond)
		}
		return nil
	})
	for n := range 100 {
		w.AddHub(t, org, n, 1+n%2)
	}
	stopKilling()
	last := w.AddSite(t, org, 3)
	projectionstest.Await(t, first, last)
	projectionstest.Await(t, second, last)
	page, err := second.Sites(t.Context(), domain.Reach{OrgID: org}, 50, "")
	for err != nil { // the pool may still hold a connection that was killed
		page, err = second.Sites(t.Context(), domain.Reach{OrgID: org}, 50, "")
	}
	if len(page.Data) != 3 || page.Data[0].HubCount != 50 || page.Data[1].HubCount != 50 {
		t.Errorf("Sites: got %+v, want three sites, two with 50 hubs", page)
	}
}

// The database is killed at work, and later stopped for a while.
func TestTheDatabaseComesBack(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	dir := filepath.Join(t.TempDir(), "postgres")
	own := func() *cluster.Cluster {
		c, err := cluster.Start(
			t.Context(), cluster.Config{Dir: dir, Logger: projectionstest.Logger(t)},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop(context.Background()) })
		return c
	}
	c := own()
	w.URL = c.URL()
	s := w.OpenStore(t)
	w.Project(t, s)
	w.AddSite(t, org, 1)
	projectionstest.Await(t, s, w.AddHub(t, org, 0, 1))
	for n := 1; n <= 60; n++ {
		if n%20 == 0 {
			var postmaster int
			conn, err := pgx.Connect(t.Context(), w.URL)
			if err == nil {
				err = conn.QueryRow(
					t.Context(), "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int",
				).
					Scan(&postmaster)
				_ = conn.Close(t.Context())
			}
			if err == nil {
				err = syscall.Kill(postmaster, syscall.SIGKILL)
			}
			if err != nil {
				t.Logf("not killed this time: %v", err)
			}
		}
		w.AddHub(t, org, n, 1)
	}
	projectionstest.Await(t, s, w.AddHub(t, org, 61, 1))
	if err := c.Stop(t.Context()); err != nil {
		t.Log(err)
	}
	last := w.AddHub(t, org, 62, 1)
	if _, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); domain.CodeOf(
		err,
	) != domain.CodeServiceUnavailable {
		t.Errorf("Sites without a database: got %v, want service_unavailable", err)
	}
	own()
	projectionstest.Await(t, s, last)
	if site, err := s.Site(t.Context(), org, projectionstest.SiteID(1)); err != nil ||
		site.HubCount != 63 {
		t.Errorf("got %d hubs, %v, want 63", site.HubCount, err)
	}
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
}
