package projector_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// An unreadable event stops the projection of its stream only, until it can be applied.
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
	bad := w.StoreRaw(t, streams.SiteSubject(org, siteID(1)), unknown)
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
	presence := func(sequence uint64, state string) {
		t.Helper()
		streamstest.Eventually(t, "presence is "+state, func() bool {
			status := w.Status(t, s)
			return status[1].Sequence == sequence && status[1].State == state
		})
	}
	online := domain.Presence{HubID: hubID(1), Online: true, Since: time.Now()}
	w.PutPresence(t, online)
	presence(1, schema.StateRunning)
	// The bucket keeps one value a hub: a new value removes the bad one.
	w.PutPresenceValue(t, hubID(2), []byte("no presence"))
	presence(1, schema.StateStopped)
	online.HubID = hubID(2)
	w.PutPresence(t, online)
	presence(3, schema.StateRunning)
}

// patched is a directory in which one event has another fact while on is set, or is unreadable if
// there is none.
type patched struct {
	projector.Directory
	seq  uint64
	fact domain.Fact
	on   atomic.Bool
}

func (p *patched) Follow(
	ctx context.Context, after uint64, fn func([]directory.Recorded) error,
) error {
	return p.Directory.Follow(ctx, after, func(batch []directory.Recorded) error {
		for i := range batch {
			if batch[i].Seq == p.seq && p.on.Load() {
				if batch[i].Fact = p.fact; p.fact == nil {
					batch[i].Err = domain.ErrUnknownEvent
				}
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
	for name, fact := range map[string]domain.Fact{
		"unreadable": nil,
		// The database rejects these.
		"an unknown hub":                 projectionstest.HubMoved(org, 77, 1),
		"a hub of another organization":  projectionstest.HubMoved(other, 0, 1),
		"an unknown member":              projectionstest.RoleChanged(org, 1, domain.RoleAdmin),
		"a removal of an unknown member": projectionstest.MemberRemoved(org, 1),
		"a site that exists": domain.SiteCreated{
			OrgID: org, SiteID: siteID(1), Name: "again",
		},
		"a text that cannot be stored": domain.SiteRenamed{
			OrgID: org, SiteID: siteID(1), Name: "a\x00b",
		},
		"an unknown invitation": projectionstest.MemberInvited(
			org, 2, time.Now(), invitationID(1),
		),
		"a key without a hash": domain.KeyCreated{KeyID: "k", OrgID: org},
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
			dir := &patched{Directory: w.Directory, seq: first + 10, fact: fact}
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
			if site, err := s.Site(t.Context(), org, siteID(1)); err != nil ||
				site.HubCount != 20 ||
				site.Name != "Site 1" {
				t.Errorf("Site: got %+v, %v, want 20 hubs and the first name", site, err)
			}
		})
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
	stopKilling := streamstest.Run(t, "the killer", func(ctx context.Context) error {
		for ctx.Err() == nil {
			err := terminateSessions(
				ctx,
				first.ConnConfig(),
				`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND query NOT LIKE '%Sites%'`,
			)
			if err != nil {
				t.Log(err) // the killers met each other, or it is the end
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
