package projector_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

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
