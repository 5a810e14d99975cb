package projections

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/projections/cluster"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// dump gives everything that the directory's read models hold, as text.
func dump(t testing.TB, conn *pgx.Conn) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{
		"orgs", "members", "invitations", "sites", "hubs", "device_labels", "api_keys", "people",
		"activity",
	} {
		rows, err := conn.Query(
			t.Context(),
			fmt.Sprintf(`SELECT x::text FROM %s x ORDER BY x::text COLLATE "C"`, table),
		)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s:\n%s\n", table, strings.Join(lines, "\n"))
	}
	return all.String()
}

// raw stores bytes in the directory that no Append would take.
func (w *world) raw(t testing.TB, subject string, data []byte) uint64 {
	t.Helper()
	seq, err := streams.Store(t.Context(), w.conns.Cloud, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// standsAt waits until a projection is stopped at a sequence.
func standsAt(t *testing.T, s *Store, projection string, seq uint64) *StoppedError {
	t.Helper()
	var stopped *StoppedError
	within(t, fmt.Sprintf("%s is stopped at %d", projection, seq), func() bool {
		return errors.As(s.Ready(t.Context()), &stopped) && stopped.Projection == projection &&
			stopped.Sequence == seq
	})
	return stopped
}

func TestAnEventThatCannotBeReadStopsTheLineThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	before := w.site(t, org, 1)
	await(t, s, before) // complete
	unknown := fmt.Appendf(
		nil,
		`{"id":%q,"type":"site.painted","v":1,"at":"2026-01-02T03:04:05Z","actor":{"kind":"operator"},"data":{}}`,
		ulid.Make(),
	)
	bad := w.raw(t, streams.SiteSubject(org, siteID(1)), unknown)
	w.site(t, org, 2)
	stopped := standsAt(t, s, DirectoryProjection, bad)
	if stopped.Type != "site.painted" || !strings.Contains(stopped.Error(), "unknown event") {
		t.Errorf("stopped by %v", stopped)
	}
	status, err := s.Status(t.Context(), w.dir, w.buckets.Presence)
	if err != nil || len(status) != 2 || status[0].Name != DirectoryProjection || status[0].State != StateStopped ||
		status[0].Sequence != before ||
		status[0].Head != bad+1 ||
		status[0].Lag != 2 ||
		status[0].Stopped.Sequence != bad {
		t.Errorf("status %+v, %v", status, err)
	}
	if got := testutil.ToFloat64(s.metrics.stopped.WithLabelValues(DirectoryProjection)); got != 1 {
		t.Errorf("the metric says %v", got)
	}
	within(t, "the metrics tell how far it is behind", func() bool {
		return testutil.ToFloat64(s.metrics.lagEvents.WithLabelValues(DirectoryProjection)) == 2 &&
			testutil.ToFloat64(s.metrics.lagSeconds.WithLabelValues(DirectoryProjection)) > 0 &&
			testutil.ToFloat64(s.metrics.head.WithLabelValues(DirectoryProjection)) == float64(bad+1) &&
			testutil.ToFloat64(s.metrics.sequence.WithLabelValues(DirectoryProjection)) == float64(before)
	})
	// What came before it is there, what comes after is not, and the other projection goes on.
	page, err := s.Sites(t.Context(), org, 50, "")
	if err != nil || len(page.Data) != 1 {
		t.Errorf("%v, %v", page, err)
	}
	w.say(t, domain.Presence{HubID: hubID(1), Online: true, Since: time.Now()})
	within(t, "presence goes on", func() bool {
		status, err := s.Status(t.Context(), w.dir, w.buckets.Presence)
		return err == nil && status[1].Sequence == 1 && status[1].State == StateRunning
	})
}

// patched gives a directory's events with one of them changed, for as long as it is told to.
type patched struct {
	Directory
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

func TestAStoppedLineGoesOnOnceTheEventCanBeApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	first := w.site(t, org, 1)
	for n := range 20 {
		w.hub(t, org, n, 1)
	}
	last := w.site(t, org, 2)
	for name, patch := range map[string]func(*directory.Recorded){
		"unreadable": func(r *directory.Recorded) { r.Fact, r.Err = nil, domain.ErrUnknownEvent },
		// The database itself refuses these.
		"a hub that is not there": func(r *directory.Recorded) {
			r.Fact = domain.HubMoved{
				HubID: hubID(77), OrgID: org, SiteID: siteID(1),
			}
		},
		"somebody else's hub": func(r *directory.Recorded) {
			r.Fact = domain.HubMoved{HubID: hubID(0), OrgID: other, SiteID: siteID(1)}
		},
		"a site that is there": func(r *directory.Recorded) {
			r.Fact = domain.SiteCreated{
				OrgID: org, SiteID: siteID(1), Name: "again",
			}
		},
		"a text that cannot be kept": func(r *directory.Recorded) {
			r.Fact = domain.SiteRenamed{OrgID: org, SiteID: siteID(1), Name: "a\x00b"}
		},
		"a member who is not there": func(r *directory.Recorded) {
			r.Fact = domain.MemberRoleChanged{
				OrgID: org, MemberID: memberID(1), Role: domain.RoleAdmin,
			}
		},
		"a removal of who is not there": func(r *directory.Recorded) {
			r.Fact = domain.MemberRemoved{
				OrgID: org, MemberID: memberID(1),
			}
		},
		"an invitation that is not there": func(r *directory.Recorded) { r.Fact = invited(org, 2, time.Now(), invitationID(1)) },
		"a key without a hash": func(r *directory.Recorded) {
			r.Fact = domain.KeyCreated{
				KeyID: "k", OrgID: org,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, statement := range []string{
				"TRUNCATE orgs, members, people, activity, invitations, sites, hubs, device_labels, api_keys",
				"UPDATE checkpoints SET sequence = 0, event_id = '', built = false, " +
					"stopped_sequence = NULL, stopped_error = NULL",
			} {
				if _, err := s.pool.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			dir := &patched{Directory: w.dir, seq: first + 10, patch: patch}
			dir.on.Store(true)
			stop := w.projectFrom(t, s, dir)
			defer stop()
			standsAt(t, s, DirectoryProjection, first+10)
			if status, err := s.Status(t.Context(), w.dir, w.buckets.Presence); err != nil ||
				status[0].Sequence != first+9 {
				t.Errorf("%+v, %v", status, err)
			}
			dir.on.Store(false)
			await(t, s, last)
			within(t, "ready again", func() bool { return s.Ready(t.Context()) == nil })
			if site, err := s.Site(t.Context(), org, siteID(1)); err != nil ||
				site.HubCount != 20 ||
				site.Name != "Site 1" {
				t.Errorf("%+v, %v", site, err)
			}
		})
	}
}

func TestAPresenceThatCannotBeReadStopsOnlyItsOwnLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	await(t, s, w.site(t, org, 1))
	w.say(t, domain.Presence{HubID: hubID(1), Online: true, Since: time.Now()})
	w.put(t, hubID(2), []byte("no presence"))
	standsAt(t, s, PresenceProjection, 2)
	await(t, s, w.site(t, org, 2))
	// The bucket keeps one value a hub: written anew, the bad one is gone.
	w.say(t, domain.Presence{HubID: hubID(2), Online: true, Since: time.Now()})
	within(t, "ready again", func() bool { return s.Ready(t.Context()) == nil })
}

func TestReadModelsAreReadyOnceTheyAreComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	last := w.site(t, org, 1)
	if err := s.Ready(t.Context()); !errors.Is(err, ErrBuilding) {
		t.Errorf("before anything is projected: %v", err)
	}
	stop := w.project(t, s)
	await(t, s, last)
	within(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
	stop()
	// A later process finds them complete, also while it is behind.
	w.site(t, org, 2)
	if err := w.open(t).Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhoStandsByTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.open(t), w.open(t)
	stopFirst := w.project(t, first)
	await(t, first, w.site(t, org, 1))
	within(
		t, "the first projects",
		func() bool { return testutil.ToFloat64(first.metrics.leading) == 1 },
	)
	w.project(t, second)

	stopFirst()
	if got := testutil.CollectAndCount(first.metrics.sequence) + testutil.CollectAndCount(first.metrics.lagEvents); got != 0 ||
		testutil.ToFloat64(first.metrics.leading) != 0 {
		t.Errorf("who projects no more still tells how far the read models are: %d series", got)
	}
	begun := time.Now()
	await(t, second, w.site(t, org, 2))
	t.Logf("taken over %s after the first has ended", time.Since(begun))
	if testutil.ToFloat64(second.metrics.leading) != 1 {
		t.Error("the second does not project")
	}

	// The second loses its connections, the first wants to project again: whoever wins, nothing is
	// applied twice.
	w.project(t, first)
	stopKilling := background(t, "the killer", func(ctx context.Context) error {
		for ctx.Err() == nil {
			_, err := first.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid() AND query NOT LIKE '%Sites%'`)
			if err != nil && ctx.Err() == nil {
				return nil // the killers met each other
			}
			pause(ctx, 100*time.Millisecond)
		}
		return nil
	})
	for n := range 100 {
		w.hub(t, org, n, 1+n%2)
	}
	stopKilling()
	last := w.site(t, org, 3)
	await(t, first, last)
	await(t, second, last)
	page, err := second.Sites(t.Context(), org, 50, "")
	for err != nil { // the pool may still hold a connection that was killed
		page, err = second.Sites(t.Context(), org, 50, "")
	}
	if len(page.Data) != 3 || page.Data[0].HubCount != 50 || page.Data[1].HubCount != 50 {
		t.Errorf("%+v", page)
	}
}

// The database is killed in the midst of things, and later away for a while.
func TestTheDatabaseComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "postgres")
	own := func() *cluster.Cluster {
		c, err := cluster.Start(t.Context(), cluster.Config{Dir: dir, Log: testLog(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop(context.Background()) })
		return c
	}
	c := own()
	w.url = c.URL()
	s := w.open(t)
	w.project(t, s)
	w.site(t, org, 1)
	await(t, s, w.hub(t, org, 0, 1))
	for n := 1; n <= 60; n++ {
		if n%20 == 0 {
			var postmaster int
			conn, err := pgx.Connect(t.Context(), w.url)
			if err == nil {
				err = conn.QueryRow(t.Context(), "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int").
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
		w.hub(t, org, n, 1)
	}
	await(t, s, w.hub(t, org, 61, 1))
	if err := c.Stop(t.Context()); err != nil {
		t.Log(err)
	}
	last := w.hub(t, org, 62, 1)
	if _, err := s.Sites(t.Context(), org, 50, ""); domain.CodeOf(
		err,
	) != domain.CodeServiceUnavailable {
		t.Errorf("sites were read from a database that is not there: %v", err)
	}
	own()
	await(t, s, last)
	if site, err := s.Site(t.Context(), org, siteID(1)); err != nil || site.HubCount != 63 {
		t.Errorf("%d hubs, want 63: %v", site.HubCount, err)
	}
	within(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
}

// However a history is cut into batches, the tables are the same.
func TestBatchesDoNotMatter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := newWorld(t)
	many.conns, many.dir, many.buckets = w.conns, w.dir, w.buckets
	for _, url := range []string{w.url, many.url} { // nothing here outlasts the test
		execute(
			t, url,
			"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
		)
	}
	into := func(w *world) *pass[directory.Recorded] {
		s := w.open(t)
		conn, err := pgx.ConnectConfig(t.Context(), s.dial.Copy())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		p := newPass(newLine(s, &directorySource{log: w.dir}, &progress{}, w.dir, 0, false), conn)
		p.built = true
		return p
	}
	one, batched := into(w), into(many)
	rapid.Check(t, func(rt *rapid.T) {
		var history []directory.Recorded
		record := func(fact domain.Fact) {
			seq := uint64(len(history) + 1)
			event := domain.Record(
				domain.Origin{At: time.UnixMicro(int64(1e15 + seq)), Actor: byOperator}, fact,
			)
			event.ID = fmt.Sprint("event-", seq)
			history = append(history, directory.Recorded{Seq: seq, Event: event, Fact: fact})
		}
		var sites, hubs, released, keys, members, invitations []int
		for step := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			pick := func(of []int) int { return rapid.SampledFrom(of).Draw(rt, "which") }
			name := rapid.SampledFrom([]string{"a", "b", "ü"}).Draw(rt, "name")
			switch kind := rapid.IntRange(0, 17).Draw(rt, "kind"); {
			case kind == 0:
				record(domain.OrgCreated{OrgID: fmt.Sprint("org-", step), Name: name})
			case kind == 1:
				members = append(members, step)
				record(joined(org, step, domain.RoleMember))
			case kind == 2 || len(sites) == 0:
				sites = append(sites, step)
				record(domain.SiteCreated{OrgID: org, SiteID: siteID(step), Name: name})
			case kind == 3:
				record(domain.SiteRenamed{OrgID: org, SiteID: siteID(pick(sites)), Name: name})
			case kind == 4 || len(hubs) == 0:
				hubs = append(hubs, step)
				record(added(org, step, pick(sites)))
			case kind == 5:
				record(
					domain.HubMoved{
						HubID:  hubID(pick(hubs)),
						OrgID:  org,
						SiteID: siteID(pick(sites)),
					},
				)
			case kind == 6:
				record(
					domain.HubRenamed{
						HubID: hubID(pick(hubs)),
						OrgID: org,
						Name:  rapid.SampledFrom([]*string{nil, &name}).Draw(rt, "new name"),
					},
				)
			case kind == 7:
				if rapid.Bool().Draw(rt, "restored") {
					record(
						domain.HubLogRestored{
							HubID:   hubID(pick(hubs)),
							OrgID:   org,
							EpochID: domain.NewEpochID(uint32(step)),
							Former:  domain.FormerEpochs{{ID: domain.NewEpochID(0xa), Through: 5}},
						},
					)
					break
				}
				record(
					domain.HubLogBegun{
						HubID:   hubID(pick(hubs)),
						OrgID:   org,
						EpochID: domain.NewEpochID(uint32(step)),
						After:   uint64(step),
					},
				)
			case kind == 8 || len(keys) == 0:
				keys = append(keys, step)
				record(
					domain.KeyCreated{
						KeyID:       fmt.Sprint("key-", step),
						OrgID:       org,
						Environment: domain.EnvironmentDev,
						Scopes:      domain.AllScopes()[:1+step%3],
						SecretHash:  make([]byte, 32),
					},
				)
			case kind == 9 && len(members) > 0:
				role := rapid.SampledFrom([]domain.Role{
					domain.RoleOwner, domain.RoleAdmin, domain.RoleMember,
				}).
					Draw(rt, "role")
				record(
					domain.MemberRoleChanged{
						OrgID:    org,
						MemberID: memberID(pick(members)),
						Role:     role,
					},
				)
			case kind == 10 && len(members) > 0:
				var gone int
				gone, members = take(rt, members)
				record(domain.MemberRemoved{OrgID: org, MemberID: memberID(gone)})
			case kind == 11 && len(invitations) > 0 && rapid.Bool().Draw(rt, "replace"):
				var former int
				former, invitations = take(rt, invitations)
				record(invited(org, step, time.UnixMicro(2e15), invitationID(former)))
				invitations = append(invitations, step)
			case kind == 11:
				record(invited(org, step, time.UnixMicro(2e15), ""))
				invitations = append(invitations, step)
			case kind == 12 && len(invitations) > 0:
				var former int
				if former, invitations = take(rt, invitations); rapid.Bool().Draw(rt, "revoke") {
					record(
						domain.MemberInvitationRevoked{
							OrgID:        org,
							InvitationID: invitationID(former),
						},
					)
					break
				}
				record(joined(org, step, domain.RoleMember))
				members = append(members, step)
				record(
					domain.MemberInvitationAccepted{
						OrgID:        org,
						InvitationID: invitationID(former),
						MemberID:     memberID(step),
					},
				)
			case kind == 13 || kind == 14:
				text := rapid.SampledFrom([]*string{nil, &name})
				record(domain.DeviceLabeled{
					HubID: hubID(
						pick(hubs),
					), OrgID: org, DeviceID: rapid.Int64Range(1, 3).Draw(rt, "device"),
					Name: text.Draw(rt, "device's name"), Room: text.Draw(rt, "room"),
				})
			case kind == 16 && len(hubs) > 1:
				var gone int
				gone, hubs = take(rt, hubs)
				record(domain.HubReleased{HubID: hubID(gone), OrgID: org, After: uint64(step)})
				released = append(released, gone)
			case kind == 17 && len(released) > 0:
				var again int
				again, released = take(rt, released)
				fact := added(org, again, pick(sites))
				fact.After = uint64(step)
				record(fact)
				hubs = append(hubs, again)
			case kind == 15:
				record(
					domain.DeviceForgotten{
						HubID:    hubID(pick(hubs)),
						OrgID:    org,
						DeviceID: rapid.Int64Range(1, 3).Draw(rt, "device"),
					},
				)
			default:
				record(domain.KeyRevoked{KeyID: fmt.Sprint("key-", pick(keys)), OrgID: org})
			}
		}
		apply := func(to *pass[directory.Recorded], size func() int) {
			const empty = "DELETE FROM orgs; DELETE FROM members; DELETE FROM people; DELETE " +
				"FROM activity; DELETE FROM invitations; DELETE FROM sites; DELETE FROM hubs; " +
				"DELETE FROM device_labels; DELETE FROM api_keys; " +
				"UPDATE checkpoints SET sequence = 0, event_id = ''"
			if _, err := to.conn.Exec(t.Context(), empty); err != nil {
				rt.Fatal(err)
			}
			to.writer.checkpoint, to.writer.eventID = 0, ""
			for rest := history; len(rest) > 0; {
				n := min(size(), len(rest))
				if err := to.apply(t.Context(), rest[:n]); err != nil {
					rt.Fatal(err)
				}
				rest = rest[n:]
			}
		}
		apply(one, func() int { return 1 })
		apply(batched, func() int { return rapid.IntRange(1, 40).Draw(rt, "batch") })
		if got, want := dump(t, batched.conn), dump(t, one.conn); got != want {
			rt.Fatalf("in batches:\n%s\none by one:\n%s", got, want)
		}
	})
}

// take draws one of some, and gives it and the rest.
func take(t *rapid.T, from []int) (one int, rest []int) {
	i := rapid.IntRange(0, len(from)-1).Draw(t, "which")
	return from[i], slices.Delete(slices.Clone(from), i, i+1)
}

func TestManyEventsTakeLittleTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const hubs, rounds = 2_000, 3
	events := make([]*nats.Msg, 0, hubs*(rounds+1)+1)
	tell := func(subject string, fact domain.Fact) {
		event := domain.Record(
			domain.Origin{At: time.Now().Add(-time.Hour), Actor: byOperator}, fact,
		)
		event.ID = ulid.Make().String()
		data, err := domain.EncodeEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, &nats.Msg{Subject: subject, Data: data})
	}
	tell(
		streams.SiteSubject(org, siteID(1)),
		domain.SiteCreated{OrgID: org, SiteID: siteID(1), Name: "1"},
	)
	for n := range hubs {
		tell(streams.HubSubject(hubID(n)), added(org, n, 1))
	}
	for round := range rounds {
		for n := range hubs {
			name := fmt.Sprint("Hub ", round)
			tell(
				streams.HubSubject(hubID(n)),
				domain.HubRenamed{HubID: hubID(n), OrgID: org, Name: &name},
			)
		}
	}
	for batch := events; len(batch) > 0; batch = batch[min(500, len(batch)):] {
		if _, err := streams.Store(t.Context(), w.conns.Cloud, batch[:min(500, len(batch))]...); err != nil {
			t.Fatal(err)
		}
	}
	s := w.open(t)
	begun := time.Now()
	w.project(t, s)
	await(t, s, uint64(len(events)))
	took := time.Since(begun)
	t.Logf("%d events in %s: %.0f a second", len(events), took, float64(len(events))/took.Seconds())
	begun = time.Now()
	taken, err := s.snapshot(t.Context())
	if err != nil || len(taken.hubs) != hubs {
		t.Errorf("%d hubs, %v", len(taken.hubs), err)
	}
	t.Logf("a snapshot of %d hubs: %s", hubs, time.Since(begun))
}
