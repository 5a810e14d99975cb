package directory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// unavailable fails unless err is a service_unavailable that says so, and still is what it was.
func unavailable(t *testing.T, what string, err error, says string, was error) {
	t.Helper()
	var told *domain.Error
	if !errors.As(err, &told) || told.Code != domain.CodeServiceUnavailable ||
		told.RetryAfter == 0 ||
		!strings.Contains(told.Message, says) {
		t.Errorf("%s: %v, wanted service_unavailable with %q", what, err, says)
	}
	if was != nil && !errors.Is(err, was) {
		t.Errorf("%s: %v is not %v any more", what, err, was)
	}
}

// Management calls were answered 500 when an election lasted longer than they waited, and when an
// answer of the broker was lost: neither is a fault of the service that stays, and the message said
// nothing of what was known.
func TestFaultsThatPassAreUnavailable(t *testing.T) {
	t.Parallel()
	broker := &cutter{Broker: streamstest.New(t)}
	conns := broker.Connect(t, nats.InProcessServer(broker))
	log := open(t, conns)
	service := directory.NewService(
		log,
		directory.ServiceConfig{
			Environment: domain.EnvironmentDev,
			Quotas:      directory.Quotas{SitesPerOrg: 10},
		},
	)
	histories := directory.NewRepository(
		log, func(string) string { return subject }, evolveHistory, 10,
	)
	org, _, err := service.CreateOrg(t.Context(), origin, "Acme", "ann@example.org")
	if err != nil {
		t.Fatal(err)
	}

	broker.armed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	_, _, err = histories.Update(ctx, "s", addName("1"))
	cancel()
	unavailable(t, "an answer that was lost", err, "may be stored", jsapi.ErrOutcomeUnknown)

	// it is connected again
	if _, _, err = histories.Update(t.Context(), "s", addName("2")); err != nil {
		t.Fatal(err)
	}
	others := directory.NewRepository(
		log, func(string) string { return subject }, evolveHistory, 10,
	)
	_, _, err = histories.Update(t.Context(), "s", func(history) ([]domain.Event, error) {
		if _, _, err := others.Update(t.Context(), "other turns", addName("faster")); err != nil {
			t.Error(err)
		}
		return []domain.Event{renamed("slower")}, nil
	})
	unavailable(
		t, "others who are always faster", err, "nothing was changed", directory.ErrConflict,
	)

	broker.Stop()
	within := func(do func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return do(ctx)
	}
	for what, do := range map[string]func(ctx context.Context) error{
		"get": func(ctx context.Context) error { _, _, err := histories.Get(ctx, "s"); return err },
		"update": func(ctx context.Context) error {
			_, _, err := histories.Update(ctx, "s", addName("3"))
			return err
		},
		"create a site": func(ctx context.Context) error { _, err := service.CreateSite(ctx, origin, org, "Site"); return err },
		"look for a hub": func(ctx context.Context) error {
			_, _, err := service.Hub(ctx, "hub-0000-0000-0001")
			return err
		},
		"find an account": func(ctx context.Context) error { _, err := service.Account(ctx, "ann@example.org"); return err },
	} {
		unavailable(t, what+" without a broker", within(do), "nothing was changed", nil)
	}
	broker.Start(t)
	if _, err := service.CreateSite(t.Context(), origin, org, "Site"); err != nil {
		t.Errorf("once the broker is back: %v", err)
	}
}
