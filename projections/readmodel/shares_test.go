package readmodel_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

// One organization's slow queries took all connections: others' lists took seconds, and then were
// answered 503. Now its reads wait for its share, and others' do not.
func TestReadsOfOneOrganizationLeaveConnections(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	asking, end := make(chan bool, 100), make(chan bool)
	var slow errgroup.Group
	for range 50 {
		slow.Go(func() error {
			return s.Read(t.Context(), func(context.Context) (int, error) {
				asking <- true
				<-end
				return 0, nil
			})
		})
	}
	streamstest.Eventually(t, "a slow read asks", func() bool { return len(asking) > 0 })
	for range 10 {
		if sites, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(sites.Data) != 1 {
			t.Fatalf("another organization's read: got %v, %v, want its site", sites, err)
		}
	}
	if n := len(asking); n > 4 {
		t.Errorf("got %d reads of one organization at the same time, want at most 4", n)
	}
	close(end)
	if err := slow.Wait(); err != nil || len(asking) != 50 {
		t.Errorf("slow reads: got %v, %d of 50 served", err, len(asking))
	}
}

// A read that panicked kept its connection of the organization's share for ever.
func TestPanicReleasesTheShare(t *testing.T) {
	t.Parallel()
	s := openComplete(t)
	for n := range 10 { // more than the share
		func() {
			defer func() { _ = recover() }()
			err := s.Read(t.Context(), func(context.Context) (int, error) { panic("a bug") })
			t.Errorf("read %d: got %v, want a panic", n, err)
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Read(ctx, func(context.Context) (int, error) { return 0, nil }); err != nil {
		t.Errorf("after panics: got %v, want an answer", err)
	}
}

// A query that takes long counted as a database that is away: all connections were closed, and
// everybody's reads failed.
func TestSlowQueryIsNoOutage(t *testing.T) {
	t.Parallel()
	s := openComplete(t)
	if limit, err := s.StatementTimeout(t.Context()); err != nil || limit != "4s" {
		t.Errorf("got statement_timeout %s, %v, want 4s", limit, err)
	}
	err := s.Read(t.Context(), func(context.Context) (int, error) {
		return 0, &pgconn.PgError{Code: schema.CodeQueryCanceled}
	})
	if domain.CodeOf(err) != domain.CodeRateLimited || s.Away() {
		t.Errorf("got %v, away %t, want rate_limited, false", err, s.Away())
	}
}
