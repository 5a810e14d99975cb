package directory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// wantUnavailable fails unless err is a service_unavailable with a Retry-After and a message that
// contains text, and wraps the cause. A nil cause is not checked.
func wantUnavailable(t *testing.T, call string, err error, text string, cause error) {
	t.Helper()
	var got *domain.Error
	if !errors.As(err, &got) || got.Code != domain.CodeServiceUnavailable ||
		got.RetryAfter == 0 || !strings.Contains(got.Message, text) {
		t.Errorf("%s: got %v, want service_unavailable with %q", call, err, text)
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Errorf("%s: got %v, want an error that wraps %v", call, err, cause)
	}
}

// Regression: management requests failed with internal_error when an election lasted longer than
// they waited, and when the broker's answer was lost. Both are temporary, and the message must say
// whether the change may be stored.
func TestTemporaryFailuresAreUnavailable(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The caller goes before a second try finds what the first has stored.
	broker := streamstest.NewCutter(t, "PUB "+subject)
	broker.OnCut = cancel
	log := open(t, broker.Connect(t))
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
	streamstest.Must(t, err)

	broker.Arm()
	_, _, err = histories.Update(ctx, "s", addName("1"))
	wantUnavailable(t, "update with a lost answer", err, "may be stored", jsapi.ErrOutcomeUnknown)

	// Wait until the client has reconnected.
	if _, _, err = histories.Update(t.Context(), "s", addName("2")); err != nil {
		t.Fatal(err)
	}
	others := directory.NewRepository(
		log, func(string) string { return subject }, evolveHistory, 10,
	)
	_, _, err = histories.Update(t.Context(), "s", func(history) ([]domain.Event, error) {
		if _, _, err := others.Update(t.Context(), "another mutex", addName("faster")); err != nil {
			t.Error(err)
		}
		return []domain.Event{renamed("slower")}, nil
	})
	wantUnavailable(
		t, "update with endless conflicts", err, "nothing was changed", directory.ErrConflict,
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
		"create a site": func(ctx context.Context) error {
			_, err := service.CreateSite(ctx, origin, org, "Site")
			return err
		},
		"read a hub": func(ctx context.Context) error {
			_, _, err := service.Hub(ctx, "hub-0000-0000-0001")
			return err
		},
		"read an account": func(ctx context.Context) error {
			_, err := service.Account(ctx, "ann@example.org")
			return err
		},
	} {
		wantUnavailable(t, what+" without a broker", within(do), "nothing was changed", nil)
	}
	broker.Start(t)
	if _, err := service.CreateSite(t.Context(), origin, org, "Site"); err != nil {
		t.Errorf("CreateSite with the broker restarted: %v", err)
	}
}
