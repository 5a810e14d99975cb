package directory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// TestMetrics checks that appends, conflicts and unconfirmed effects are counted. Regression: with
// stopped read models a command did not wait for the replicas either.
func TestMetrics(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	log := open(t, broker.Connect(t))
	registry := prometheus.NewPedanticRegistry()
	value := func(name string, labels ...string) float64 {
		t.Helper()
		return streamstest.MetricValue(t, registry, "hubcloud_directory_"+name, labels...)
	}
	var errReadModels, errReplicas, errAdmit error
	applied := 0
	s := directory.NewService(log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev, Metrics: registry,
		Admit:           func(int) error { return errAdmit },
		AwaitReadModels: func(context.Context, uint64) error { return errReadModels },
		AwaitReplicas:   func(context.Context, uint64) error { applied++; return errReplicas },
	})
	org, _, err := s.CreateOrg(t.Context(), anOperator, "Org", "a@example.com")
	streamstest.Must(t, err)
	errReadModels = directory.ErrReadModelsStopped
	before := applied
	createKey := func() (id, key string, err error) {
		return s.CreateKey(
			t.Context(), anOperator, org, "", domain.AllScopes(), domain.KeyLimits{},
		)
	}
	if _, _, err := createKey(); err != nil || applied != before+1 {
		t.Errorf("with stopped read models: %v, %d waits for other replicas", err, applied-before)
	}
	errReadModels, errReplicas = nil, errors.New("a replica hangs")
	id, key, err := createKey()
	if err != nil || key == "" {
		t.Errorf("CreateKey with a replica that hangs: got key %q, %v, want a key", key, err)
	}
	if err := s.RevokeKey(t.Context(), anOperator, id, org); !errors.Is(err, directory.ErrNotInForce) {
		t.Errorf("RevokeKey with a replica that hangs: got %v, want ErrNotInForce", err)
	}
	events := value("events_appended_total")
	if appends := value("append_duration_seconds"); appends < 4 || events < appends {
		t.Errorf("got %v events in %v appends, want at least 4 appends", events, appends)
	}
	if got := value("effects_unconfirmed_total"); got != 2 {
		t.Errorf("got %v unconfirmed effects, want 2", got)
	}
	// Regression: a command that takes access away was observed once for each of its two waits.
	errReplicas = nil
	waits := value("effect_wait_duration_seconds")
	streamstest.Must(t, s.RevokeKey(t.Context(), anOperator, id, org))
	if got := value("effect_wait_duration_seconds") - waits; got != 1 {
		t.Errorf("RevokeKey: got %v observed waits, want 1", got)
	}
	errAdmit = errors.New("the disk is full")
	if err := s.RenameOrg(t.Context(), anOperator, org, "Other"); !errors.Is(err, errAdmit) {
		t.Errorf("RenameOrg without space: got %v, want %v", err, errAdmit)
	}
	if got := value("append_failures_total", "cause", "error"); got != 1 {
		t.Errorf("got %v failures, want 1", got)
	}
}
