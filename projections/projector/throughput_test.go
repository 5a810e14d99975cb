package projector_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestManyEventsAreProjected(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	const hubs, rounds = 2_000, 3
	events := make([]*nats.Msg, 0, hubs*(rounds+1)+1)
	report := func(subject string, fact domain.Fact) {
		event := domain.Record(
			domain.Origin{At: time.Now().Add(-time.Hour), Actor: projectionstest.Operator}, fact,
		)
		event.ID = ulid.Make().String()
		data, err := domain.EncodeEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, &nats.Msg{Subject: subject, Data: data})
	}
	report(
		streams.SiteSubject(org, projectionstest.SiteID(1)),
		domain.SiteCreated{OrgID: org, SiteID: projectionstest.SiteID(1), Name: "1"},
	)
	for n := range hubs {
		report(streams.HubSubject(projectionstest.HubID(n)), projectionstest.HubAdded(org, n, 1))
	}
	for round := range rounds {
		for n := range hubs {
			name := fmt.Sprint("Hub ", round)
			report(
				streams.HubSubject(projectionstest.HubID(n)),
				domain.HubRenamed{HubID: projectionstest.HubID(n), OrgID: org, Name: &name},
			)
		}
	}
	for batch := events; len(batch) > 0; batch = batch[min(500, len(batch)):] {
		if _, err := jsapi.Append(
			t.Context(), w.Conns.Cloud, batch[:min(500, len(batch))]...,
		); err != nil {
			t.Fatal(err)
		}
	}
	s := w.OpenStore(t)
	begun := time.Now()
	w.Project(t, s)
	projectionstest.Await(t, s, uint64(len(events)))
	took := time.Since(begun)
	t.Logf("%d events in %s: %.0f a second", len(events), took, float64(len(events))/took.Seconds())
	begun = time.Now()
	snapshot, err := s.AccessSnapshot(t.Context())
	if err != nil || len(snapshot.Hubs) != hubs {
		t.Errorf("AccessSnapshot: got %d hubs, %v", len(snapshot.Hubs), err)
	}
	t.Logf("a snapshot of %d hubs: %s", hubs, time.Since(begun))
}

// An event stopped a projection while a rebuild replaced the read models. The stop was recorded in
// the new ones, which stayed stopped until the next event.
func TestStopIsNotRecordedInReplacedReadModels(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	end := w.Project(t, s).Stop
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	last := w.AddSite(t, org, 2)
	projectionstest.Await(t, s, last)
	end()
	cfg := w.ProjectorConfig(t, s)
	registry := prometheus.NewRegistry()
	cfg.Metrics = registry
	late, err := projector.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stale := &schema.StoppedError{
		Projection: schema.Directory,
		Sequence:   last,
		Type:       "site.created",
		Err:        schema.ErrOtherStream,
	}
	for name, at := range map[string]projector.Checkpoint{
		"another sequence": {Sequence: last - 1},
		"another event":    {Sequence: last, EventID: "of another stream"},
	} {
		if late.RecordStop(t.Context(), 1, at, stale) {
			t.Errorf("%s: RecordStop returned true, want false", name)
		}
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("%s: Ready: got %v, want nil", name, err)
		}
	}
	if !(projectionstest.Metrics{Registry: registry}).MetricIs(
		t, "stopped", schema.Directory, 0,
	) {
		t.Error("the metric shows a stop")
	}
	// A recorded stop at an event that the read models have is cleared.
	projectionstest.Execute(
		t,
		w.URL,
		fmt.Sprintf(
			"UPDATE %s.checkpoints SET stopped_sequence = %d, stopped_error = 'stale' WHERE "+
				"projection = 'directory'",
			s.Schema(), last-1,
		),
	)
	if err := s.Ready(t.Context()); !errors.Is(err, directory.ErrReadModelsStopped) {
		t.Fatal(err)
	}
	w.Project(t, s)
	streamstest.Eventually(t, "ready", func() bool { return s.Ready(t.Context()) == nil })
}
