package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// After Stop nothing is written, over restarts too, and waiters fail at once.
func TestStopAndResume(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	projecting := w.Project(t, s)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	c := w.Control(t)
	writing := streamstest.Run(t, "the writer", func(ctx context.Context) error {
		for n := 2; ctx.Err() == nil; n++ {
			w.AddSite(t, org, n)
		}
		return nil
	})
	for round := range 3 {
		streamstest.Must(t, c.Stop(t.Context(), []string{schema.Directory}, "a test"))
		before := w.Status(t, s)
		if before[0].State != schema.StateStoppedByOperator ||
			before[1].State != schema.StateRunning {
			t.Fatalf("status after Stop: %+v, want only the directory stopped", before)
		}
		seq := w.AddHub(t, org, round, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := s.WaitFor(ctx, seq)
		cancel()
		if !errors.Is(err, directory.ErrReadModelsStopped) {
			t.Errorf("WaitFor(%d) while stopped: got %v, want ErrReadModelsStopped", seq, err)
		}
		streamstest.Eventually(t, "the metric shows the stop", func() bool {
			return projecting.MetricIs(t, "stopped_by_operator", schema.Directory, 1)
		})
		after := w.Status(t, s)
		if after[0].Sequence != before[0].Sequence || after[0].Lag == 0 ||
			after[0].Behind == 0 {
			t.Errorf(
				"stopped at %d, later status %+v, want the same sequence with a lag",
				before[0].Sequence, after,
			)
		}
		streamstest.Must(t, c.Resume(t.Context(), []string{schema.Directory}))
		projectionstest.Await(t, s, seq)
	}
	writing()

	streamstest.Must(t, c.Stop(t.Context(), []string{
		schema.Directory, schema.Presence,
	}, ""))
	later := w.OpenStore(t)
	w.Project(t, later)
	seq := w.AddSite(t, org, 5_000_000)
	if err := later.Ready(t.Context()); !errors.Is(err, directory.ErrReadModelsStopped) {
		t.Errorf("Ready after a restart: got %v, want ErrReadModelsStopped", err)
	}
	streamstest.Must(t, c.Resume(t.Context(), []string{
		schema.Directory, schema.Presence,
	}))
	all, err := c.AwaitRunning(t.Context(), []string{schema.Directory, schema.Presence})
	if err != nil || all[0].State != schema.StateRunning || all[0].Sequence < seq ||
		all[1].State != schema.StateRunning {
		t.Errorf("AwaitRunning: got %+v, %v, want both running", all, err)
	}
}

// Only the event that stops a projection can be skipped. Then the projection continues at once, and
// later builds skip the event too.
func TestSkip(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	cfg := w.ProjectorConfig(t, s)
	cfg.RetryStopped = time.Hour // only the skip lets it continue
	projectionstest.RunProjector(t, cfg)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	c := w.Control(t)
	origin := domain.Origin{At: time.Now(), Actor: projectionstest.Operator}
	skip := func(projection string, seq uint64) (schema.Status, error) {
		return c.Skip(t.Context(), w.Directory, origin, projection, seq, "a test")
	}
	for name, poison := range map[string]func() uint64{
		"rubbish": func() uint64 {
			return w.StoreRaw(
				t, streams.SiteSubject(org, projectionstest.SiteID(9)), []byte("rubbish"),
			)
		},
		"an unknown row": func() uint64 {
			return w.Append(t, streams.HubSubject(projectionstest.HubID(8)), projectionstest.HubMoved(org, 8, 1))
		},
		"rubbish where skips are written": func() uint64 {
			return w.StoreRaw(t, streams.ProjectionSubject(schema.Directory), []byte(
				`{"type":"projection.skipped"}`,
			))
		},
	} {
		bad := poison()
		projectionstest.AwaitStopped(t, s, schema.Directory, bad)
		after := w.AddSite(t, org, int(bad)+100)
		var not *rebuild.NotStoppedError
		for _, wrong := range []uint64{0, bad - 1, bad + 1} {
			if _, err := skip("", wrong); !errors.As(err, &not) || len(not.Projections) != 4 {
				t.Errorf("%s: Skip(%d): got %v, want NotStoppedError", name, wrong, err)
			}
		}
		// Regression: the error said that no projection was stopped at the event.
		if _, err := skip(schema.Presence, bad); !errors.As(err, &not) ||
			!strings.HasPrefix(err.Error(), "the projection presence is not stopped at") {
			t.Errorf("%s: Skip in the other projection: got %v, want NotStoppedError", name, err)
		}
		if head := w.Head(t); head != after {
			t.Errorf("%s: a rejected skip was recorded", name)
		}
		// Read models that an event stops can be verified, but not rebuilt.
		if _, differences := projectionstest.Verify(t, c); len(differences) > 0 {
			t.Errorf("%s: Verify: got differences %+v, want none", name, differences)
		}
		var stopped *schema.StoppedError
		if err := c.Rebuild(t.Context(), nil); !errors.As(err, &stopped) ||
			stopped.Sequence != bad {
			t.Errorf("%s: Rebuild: got %v, want StoppedError", name, err)
		}
		now, err := skip("", bad)
		if err != nil || now.Name != schema.Directory || now.Sequence < bad ||
			now.Stopped != nil {
			t.Errorf("%s: status after Skip: %+v, %v, want the event skipped", name, now, err)
		}
		projectionstest.Await(t, s, after)
		if _, err := skip("", bad); !errors.As(err, &not) {
			t.Errorf("%s: second Skip: got %v, want NotStoppedError", name, err)
		}
	}

	w.PutPresenceValue(t, projectionstest.HubID(2), []byte("no presence"))
	projectionstest.AwaitStopped(t, s, schema.Presence, 1)
	if now, err := skip("", 1); err != nil || now.Name != schema.Presence ||
		now.Sequence != 1 {
		t.Errorf("status after Skip: %+v, %v, want presence at 1", now, err)
	}
	for _, rows := range []int{0, 1} {
		c := w.ControlLoading(t, rows)
		streamstest.Must(t, c.Rebuild(t.Context(), nil))
		if all, differences := projectionstest.Verify(t, c); len(differences) > 0 {
			t.Errorf("Verify: got %+v with differences %+v, want none", all, differences)
		}
	}
	projectionstest.Await(t, s, w.AddSite(t, org, 2))
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// Verify finds every difference and nothing else, also while the streams grow.
func TestVerify(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	populate(t, w, 500)
	for n := range 5 {
		w.PutPresence(
			t, domain.Presence{HubID: projectionstest.HubID(n), Online: true, Since: time.Now()},
		)
	}
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	c := w.Control(t)
	writing := streamstest.Run(t, "the writer", func(ctx context.Context) error {
		for n := 2; ctx.Err() == nil; n++ {
			w.AddSite(t, org, n)
			w.PutPresence(
				t,
				domain.Presence{
					HubID:  projectionstest.HubID(n % 40),
					Online: n%80 < 40,
					Since:  time.Now(),
				},
			)
			schema.Pause(ctx, 10*time.Millisecond)
		}
		return nil
	})
	for range 2 {
		if all, differences := projectionstest.Verify(t, c); len(differences) > 0 {
			t.Errorf("Verify: got %+v with differences %+v, want none", all, differences)
			break
		}
	}
	writing()
	last, err := w.Buckets.Presence.Put(
		t.Context(), "hub-last-last-last", []byte(`{"hub_id":"hub-last-last-last"}`),
	)
	streamstest.Must(t, err)
	projectionstest.Await(t, s, w.AddSite(t, org, 1_000_000))
	streamstest.Eventually(t, "presence is projected", func() bool {
		status, err := c.Status(t.Context())
		return err == nil && status[1].Sequence >= last
	})

	schema := s.Schema()
	projectionstest.Execute(t, w.URL, fmt.Sprintf(`
		UPDATE %[1]s.sites SET name = 'changed', created_sequence = created_sequence + 1000000 WHERE id = '%[2]s';
		UPDATE %[1]s.hub_presence SET reason = '' WHERE hub_id = '%[3]s';
		DELETE FROM %[1]s.activity WHERE org_id = '%[4]s' AND sequence = (SELECT min(sequence) FROM %[1]s.activity WHERE org_id = '%[4]s');
		DELETE FROM %[1]s.hub_presence WHERE hub_id = '%[5]s';
		INSERT INTO %[1]s.device_labels VALUES ('o', 'h', -7, NULL, 'room'), ('o', 'h', 12, NULL, 'room'), ('o', 'h', 3, NULL, 'room')`,
		schema, projectionstest.SiteID(1), projectionstest.HubID(1), org, projectionstest.HubID(2)))
	all, differences := projectionstest.Verify(t, c)
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
			t.Errorf("unexpected difference %+v", d)
		}
		delete(want, text)
		if d.Column == "name" &&
			(*d.Live != "changed" || *d.Rebuilt != "Site 1" || d.Key[0] != (rebuild.KeyColumn{
				Name: "id", Value: projectionstest.SiteID(1),
			})) {
			t.Errorf("difference with wrong values %+v", d)
		}
		if d.Column == "reason" && (*d.Live != "" || d.Rebuilt != nil) {
			t.Errorf("difference with wrong values %+v", d)
		}
	}
	if len(want) > 0 || all[0].Differences+all[1].Differences != len(differences) ||
		all[1].Moving != 0 {
		t.Errorf("differences not found: %v; result %+v", want, all)
	}
	streamstest.Must(t, c.Rebuild(t.Context(), nil))
	if all, differences := projectionstest.Verify(t, c); len(differences) > 0 {
		t.Errorf("Verify after Rebuild: got %+v with differences %+v, want none", all, differences)
	}
	if schemas := w.Schemas(t); len(schemas) != 2 {
		t.Errorf("schemas are %v, want two", schemas)
	}
}

// Open needs the read models of a service and creates none.
func TestOpenNeedsReadModels(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	open := func(installation string) error {
		_, err := rebuild.Open(
			t.Context(), w.URL, installation, rebuild.Config{Sources: w.Sources()},
		)
		return err
	}
	if err := open("test"); !errors.Is(err, rebuild.ErrNoReadModels) {
		t.Errorf("Open on an empty database: got %v, want ErrNoReadModels", err)
	}
	s := w.OpenStore(t)
	if err := open("another"); !errors.Is(err, schema.ErrOtherInstallation) {
		t.Errorf(
			"Open on the database of another installation: got %v, want ErrOtherInstallation", err,
		)
	}
	if err := open("test"); err != nil {
		t.Error(err)
	}
	projectionstest.Execute(t, w.URL, "DELETE FROM hubcloud.schemas WHERE name = '"+s.Schema()+"'")
	if err := open("test"); !errors.Is(err, rebuild.ErrNoReadModels) {
		t.Errorf("Open without the schema of this version: got %v, want ErrNoReadModels", err)
	}
}
