package projections

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// Once a stop has returned nothing more is written, over restarts too; what waits for the read
// models is told at once.
func TestStopAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	await(t, s, w.site(t, org, 1))
	c := w.control(t)
	writing := background(t, "the writer", func(ctx context.Context) error {
		for n := 2; ctx.Err() == nil; n++ {
			w.site(t, org, n)
		}
		return nil
	})
	for round := range 3 {
		if err := c.Stop(t.Context(), []string{DirectoryProjection}, "a test"); err != nil {
			t.Fatal(err)
		}
		before, err := s.Status(t.Context(), w.dir, w.buckets.Presence)
		if err != nil || before[0].State != StateStoppedByOperator ||
			before[1].State != StateRunning {
			t.Fatalf("%+v, %v", before, err)
		}
		seq := w.hub(t, org, round, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = s.WaitFor(ctx, seq)
		cancel()
		if !errors.Is(err, directory.ErrStandingStill) {
			t.Errorf("waited for %d: %v", seq, err)
		}
		within(t, "the metric", func() bool {
			return testutil.ToFloat64(
				s.metrics.stoppedByOperator.WithLabelValues(DirectoryProjection),
			) == 1
		})
		after, err := s.Status(t.Context(), w.dir, w.buckets.Presence)
		if err != nil || after[0].Sequence != before[0].Sequence || after[0].Lag == 0 ||
			after[0].Behind == 0 {
			t.Errorf("it went on from %d: %+v, %v", before[0].Sequence, after, err)
		}
		if err := c.Resume(t.Context(), []string{DirectoryProjection}); err != nil {
			t.Fatal(err)
		}
		await(t, s, seq)
	}
	writing()

	if err := c.Stop(t.Context(), []string{
		DirectoryProjection, PresenceProjection,
	}, ""); err != nil {
		t.Fatal(err)
	}
	later := w.open(t)
	w.project(t, later)
	seq := w.site(t, org, 5_000_000)
	if err := later.Ready(t.Context()); !errors.Is(err, directory.ErrStandingStill) {
		t.Errorf("after a restart: %v", err)
	}
	if err := c.Resume(t.Context(), []string{DirectoryProjection, PresenceProjection}); err != nil {
		t.Fatal(err)
	}
	all, err := c.AwaitRunning(t.Context(), []string{DirectoryProjection, PresenceProjection})
	if err != nil || all[0].State != StateRunning || all[0].Sequence < seq ||
		all[1].State != StateRunning {
		t.Errorf("%+v, %v", all, err)
	}
}

// Only the event that stops a projection can be skipped; then it goes on at once, and whoever
// builds the read models later steps over it too.
func TestSkip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	s.retryStopped = time.Hour // nothing but the skip has it go on
	w.project(t, s)
	await(t, s, w.site(t, org, 1))
	c := w.control(t)
	origin := domain.Origin{At: time.Now(), Actor: byOperator}
	skip := func(projection string, seq uint64) (ProjectionStatus, error) {
		_, now, err := c.Skip(t.Context(), w.dir, origin, projection, seq, "a test")
		return now, err
	}
	for name, poison := range map[string]func() uint64{
		"rubbish": func() uint64 { return w.raw(t, streams.SiteSubject(org, siteID(9)), []byte("rubbish")) },
		"a row that is not": func() uint64 {
			return w.tell(t, streams.HubSubject(hubID(8)), domain.HubMoved{
				HubID: hubID(8), OrgID: org, SiteID: siteID(1),
			})
		},
		"rubbish where skips are written": func() uint64 {
			return w.raw(t, streams.ProjectionSubject(DirectoryProjection), []byte(`{"type":"projection.skipped"}`))
		},
	} {
		bad := poison()
		standsAt(t, s, DirectoryProjection, bad)
		after := w.site(t, org, int(bad)+100)
		var not *NotStoppedError
		for _, wrong := range []uint64{0, bad - 1, bad + 1} {
			if _, err := skip("", wrong); !errors.As(err, &not) || len(not.Projections) != 2 {
				t.Errorf("%s: skipped %d: %v", name, wrong, err)
			}
		}
		if _, err := skip(PresenceProjection, bad); !errors.As(err, &not) {
			t.Errorf("%s: skipped in the other projection: %v", name, err)
		}
		if head := w.head(t); head != after {
			t.Errorf("%s: what could not be skipped was recorded", name)
		}
		// Read models with a poisoned event can be verified, and not be rebuilt.
		if _, differences := verified(t, c); len(differences) > 0 {
			t.Errorf("%s: %+v", name, differences)
		}
		var stopped *StoppedError
		if err := c.Rebuild(t.Context(), nil); !errors.As(err, &stopped) ||
			stopped.Sequence != bad {
			t.Errorf("%s: rebuilt: %v", name, err)
		}
		now, err := skip("", bad)
		if err != nil || now.Name != DirectoryProjection || now.Sequence < bad ||
			now.Stopped != nil {
			t.Errorf("%s: %+v, %v", name, now, err)
		}
		await(t, s, after)
		if _, err := skip("", bad); !errors.As(err, &not) {
			t.Errorf("%s: skipped again: %v", name, err)
		}
	}

	w.put(t, hubID(2), []byte("no presence"))
	standsAt(t, s, PresenceProjection, 1)
	if now, err := skip("", 1); err != nil || now.Name != PresenceProjection || now.Sequence != 1 {
		t.Errorf("%+v, %v", now, err)
	}
	for _, rows := range []int{loadRows, 1} {
		c.rows = rows
		if err := c.Rebuild(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if all, differences := verified(t, c); len(differences) > 0 {
			t.Errorf("%+v: %+v", all, differences)
		}
	}
	await(t, s, w.site(t, org, 2))
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Every difference is found and named, and nothing else, also while hubs come and go and people
// write.
func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t)
	w.project(t, s)
	w.populate(t, 500)
	for n := range 5 {
		w.say(t, domain.Presence{HubID: hubID(n), Online: true, Since: time.Now()})
	}
	await(t, s, w.site(t, org, 1))
	c := w.control(t)
	writing := background(t, "the writer", func(ctx context.Context) error {
		for n := 2; ctx.Err() == nil; n++ {
			w.site(t, org, n)
			w.say(t, domain.Presence{HubID: hubID(n % 40), Online: n%80 < 40, Since: time.Now()})
			pause(ctx, 10*time.Millisecond)
		}
		return nil
	})
	for range 2 {
		if all, differences := verified(t, c); len(differences) > 0 {
			t.Errorf("%+v: %+v", all, differences)
			break
		}
	}
	writing()
	last, err := w.buckets.Presence.Put(
		t.Context(), "hub-last-last-last", []byte(`{"hub_id":"hub-last-last-last"}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	await(t, s, w.site(t, org, 1_000_000))
	within(t, "presence is projected", func() bool {
		status, err := c.Status(t.Context())
		return err == nil && status[1].Sequence >= last
	})

	schema := s.Schema()
	execute(t, w.url, fmt.Sprintf(`
		UPDATE %[1]s.sites SET name = 'changed', created_sequence = created_sequence + 1000000 WHERE id = '%[2]s';
		UPDATE %[1]s.hub_presence SET reason = '' WHERE hub_id = '%[3]s';
		DELETE FROM %[1]s.activity WHERE org_id = '%[4]s' AND sequence = (SELECT min(sequence) FROM %[1]s.activity WHERE org_id = '%[4]s');
		DELETE FROM %[1]s.hub_presence WHERE hub_id = '%[5]s';
		INSERT INTO %[1]s.device_labels VALUES ('o', 'h', -7, NULL, 'room'), ('o', 'h', 12, NULL, 'room'), ('o', 'h', 3, NULL, 'room')`,
		schema, siteID(1), hubID(1), org, hubID(2)))
	all, differences := verified(t, c)
	want := map[string]bool{
		"sites changed name": true, "sites changed created_sequence": true,
		"hub_presence changed reason": true, "hub_presence missing ": true,
		"activity missing ": true, "device_labels extra  -7": true, "device_labels extra  3": true,
		"device_labels extra  12": true,
	}
	for _, d := range differences {
		text := d.Table + " " + d.What + " " + d.Column
		if d.Table == "device_labels" {
			text += " " + d.Key[1].Value
		}
		if !want[text] {
			t.Errorf("found %+v", d)
		}
		delete(want, text)
		if d.Column == "name" &&
			(*d.Live != "changed" || *d.Rebuilt != "Site 1" || d.Key[0] != (KeyColumn{
				"id", siteID(1),
			})) {
			t.Errorf("found %+v", d)
		}
		if d.Column == "reason" && (*d.Live != "" || d.Rebuilt != nil) {
			t.Errorf("found %+v", d)
		}
	}
	if len(want) > 0 || all[0].Differences+all[1].Differences != len(differences) ||
		all[1].Moving != 0 {
		t.Errorf("not found: %v of %+v", want, all)
	}
	if err := c.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if all, differences := verified(t, c); len(differences) > 0 {
		t.Errorf("%+v: %+v", all, differences)
	}
	if schemas := w.schemas(t); len(schemas) != 2 {
		t.Errorf("left are %v", schemas)
	}
}

// An operator's program looks after read models that are there, and makes none.
func TestControlNeedsReadModels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := func(installation string) error {
		_, err := OpenControl(
			t.Context(),
			ControlConfig{
				URL:            w.url,
				InstallationID: installation,
				Directory:      w.dir,
				Presence:       w.buckets.Presence,
			},
		)
		return err
	}
	if err := open("test"); !errors.Is(err, ErrNoReadModels) {
		t.Errorf("an empty database: %v", err)
	}
	s := w.open(t)
	if err := open("another"); !errors.Is(err, ErrOtherInstallation) {
		t.Errorf("another installation's: %v", err)
	}
	if err := open("test"); err != nil {
		t.Error(err)
	}
	execute(t, w.url, "DELETE FROM hubcloud.schemas WHERE name = '"+s.Schema()+"'")
	if err := open("test"); !errors.Is(err, ErrNoReadModels) {
		t.Errorf("another version's: %v", err)
	}
}
