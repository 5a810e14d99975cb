package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hubcloud/domain"
	"hubcloud/projections/cluster"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// Lists were answered 500 while PostgreSQL restarted. They wait, whatever ends the connections: a
// server that is killed, shut down or away for seconds, or an administrator who ends sessions. The
// projector goes on, and applies each event once.
func TestReadsWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	dir := filepath.Join(t.TempDir(), "postgres")
	c := startServer(t, dir)
	w.URL = c.URL()
	s := w.OpenStore(t)
	w.Project(t, s)
	w.AddSite(t, org, 1)
	hubs := 1
	projectionstest.Await(t, s, w.AddHub(t, org, 1, 1))
	var reads [2]atomic.Int64
	stopReading := []func(){}
	for i := range reads {
		stopReading = append(
			stopReading,
			streamstest.Run(t, "a reader", func(ctx context.Context) error {
				for answered := time.Now(); ctx.Err() == nil; {
					sites, err := s.Sites(ctx, domain.Reach{OrgID: org}, 50, "")
					if err == nil && len(sites.Data) != 1 {
						err = fmt.Errorf("%d sites, want 1", len(sites.Data))
					}
					if err == nil {
						_, err = s.Hub(ctx, org, hubID(1))
					}
					switch {
					case err == nil:
						answered = time.Now()
						reads[i].Add(1)
					case domain.CodeOf(err) == domain.CodeServiceUnavailable &&
						time.Since(answered) > 5*time.Second: // as long as reads wait
						streams.Sleep(ctx, 10*time.Millisecond)
					case ctx.Err() == nil:
						return err
					}
				}
				return nil
			}),
		)
	}
	goOn := func(what string) {
		t.Helper()
		hubs++
		w.AddHub(t, org, hubs, 1)
		var before [len(reads)]int64
		for i := range reads {
			before[i] = reads[i].Load()
		}
		streamstest.Eventually(t, "reads after "+what, func() bool {
			for i := range reads {
				if reads[i].Load() < before[i]+3 { // one can have been answered before
					return false
				}
			}
			return true
		})
	}
	goOn("the start")
	ask := func(sql string) (answer int) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), w.URL)
		streamstest.Must(t, err)
		defer conn.Close(context.Background())
		streamstest.Must(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
		return answer
	}
	for range 5 {
		ask(
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = " +
				"current_database() AND pid <> pg_backend_pid()",
		)
		goOn("an administrator ended sessions")
	}
	const postmaster = "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int"
	killed := ask(postmaster)
	streamstest.Must(t, syscall.Kill(killed, syscall.SIGKILL))
	// Sessions of the killed server may answer for a moment.
	streamstest.Eventually(t, "the server runs again", func() bool {
		conn, err := pgx.Connect(t.Context(), w.URL)
		if err != nil {
			return false
		}
		defer conn.Close(context.Background())
		var now int
		return conn.QueryRow(t.Context(), postmaster).Scan(&now) == nil && now != killed
	})
	goOn("the server was killed")
	streamstest.Must(t, c.Stop(t.Context()))
	streamstest.Eventually(t, "the reads wait", s.Away)
	startServer(t, dir)
	goOn("the server was away")
	projectionstest.Await(t, s, w.Head(t))
	if site, err := s.Site(t.Context(), org, siteID(1)); err != nil ||
		site.HubCount != hubs {
		t.Errorf("Site: got %d hubs, %v, want %d", site.HubCount, err, hubs)
	}
	for _, stop := range stopReading {
		stop()
	}
}

// startServer runs a PostgreSQL server of the test's own.
func startServer(t *testing.T, dir string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(
		t.Context(), cluster.Config{Dir: dir, Logger: projectionstest.Logger(t)},
	)
	streamstest.Must(t, err)
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c
}

// Reads do not wait for errors that cannot pass, and do not answer service_unavailable.
func TestMayPass(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"shutdown":             {&pgconn.PgError{Code: "57P01"}, true},
		"starting":             {fmt.Errorf("connect: %w", &pgconn.PgError{Code: "57P03"}), true},
		"too many connections": {&pgconn.PgError{Code: "53300"}, true},
		"connection":           {&pgconn.PgError{Code: "08006"}, true},
		"no connection":        {errors.New("dial unix: no such file"), true},
		"no such hub":          {domain.ErrHubNotFound(), false},
		"no such table":        {&pgconn.PgError{Code: "42P01"}, false},
		"wrong password":       {&pgconn.PgError{Code: "28P01"}, false},
		"corrupt index":        {&pgconn.PgError{Code: "XX002"}, false},
		"a column of no use": {
			fmt.Errorf("scan: %w", pgx.ScanArgError{ColumnIndex: 1, Err: errors.New("NULL")}),
			false,
		},
		"a text that is no UTF": {&pgconn.PgError{Code: "22021"}, false},
	} {
		if got := readmodel.MayPass(tt.err); got != tt.want {
			t.Errorf("%s: mayPass = %v", name, got)
		}
	}
}

// A read ends when its caller has disconnected, and with service_unavailable at the caller's
// deadline.
func TestReadsEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	s := openComplete(t)
	away := func(context.Context) (int, error) { return 0, errors.New("no connection") }
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Read(canceled, away); domain.CodeOf(err) != domain.CodeInternal {
		t.Errorf("read of a disconnected caller: got %v, want its own error", err)
	}
	late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Read(late, away); domain.CodeOf(err) != domain.CodeServiceUnavailable {
		t.Errorf("read with a deadline: got %v, want service_unavailable", err)
	}
}

// openComplete returns a store whose read models are complete.
func openComplete(t *testing.T) *readmodel.Store {
	t.Helper()
	_, s := projectionstest.NewProjected(t)
	<-s.Complete()
	return s
}
