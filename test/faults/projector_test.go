package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// stoppedProjector stops a replica while it updates the read models. A regression: the stopped
// replica kept the projector's lock. Every replica stored changes but answered 500 after ten seconds,
// and a client that repeated its request created two sites.
func stoppedProjector(t *testing.T, first, other *harness.Service) {
	tenant := harness.NewTenant(t, first, "Stopped")
	stopped := first.Replica("--roles", "projector")
	leads := func(s *harness.Service) bool {
		return s.Metrics().Value(t, "hubcloud_projections_leading") == 1
	}

	// Which of the two processes projects is random. End the session of the first until the replica
	// projects: the first process also runs the broker, so it must not be stopped.
	streamstest.Eventually(t, "the replica projects", func() bool {
		if leads(first) {
			endProjector(t, first)
		}
		return leads(stopped)
	})
	stopped.Signal(syscall.SIGSTOP)
	resume := func() { stopped.Signal(syscall.SIGCONT) }
	defer resume()

	client := harness.NewClient(t, other.Base(), tenant.Key)
	began := time.Now()
	for i := range 5 {
		client.Must(
			http.MethodPost, "/sites", map[string]string{"name": fmt.Sprintf("Site %d", i)},
			http.StatusCreated,
		)
		if i == 0 {
			t.Logf("the first change is answered after %s", time.Since(began))
		}
	}
	var sites struct{ Data []struct{ Name string } }
	if client.Must(http.MethodGet, "/sites", nil, http.StatusOK).JSON(t, &sites); len(
		sites.Data,
	) != 6 {
		t.Errorf("got sites %+v, want 6", sites)
	}

	resume()
	streamstest.Eventually(t, "another process projects",
		func() bool { return !leads(stopped) && leads(first) },
	)
	resumed := harness.NewClient(t, stopped.Base(), tenant.Key)
	resumed.Must(http.MethodPost, "/sites", map[string]string{"name": "Site 5"}, http.StatusCreated)
	if resumed.Must(http.MethodGet, "/sites", nil, http.StatusOK).JSON(t, &sites); len(
		sites.Data,
	) != 7 {
		t.Errorf("got sites %+v, want 7", sites)
	}
}

// endProjector ends the database session of the process that projects.
func endProjector(t *testing.T, s *harness.Service) {
	t.Helper()
	database := url.Values{
		"host":    {filepath.Join(s.Dir, "postgres", "socket")},
		"port":    {"5432"},
		"user":    {"hubcloud"},
		"sslmode": {"disable"},
	}
	conn, err := pgx.Connect(
		t.Context(),
		(&url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: database.Encode()}).String(),
	)
	harness.Must(t, err)
	defer conn.Close(context.Background())
	const projectors = 0x68756263 // the first key of the projector's locks
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE "+
		"locktype = 'advisory' AND classid::bigint = $1", projectors); err != nil {
		t.Fatal(err)
	}
}
