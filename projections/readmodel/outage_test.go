package readmodel_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/streamstest"
)

// While the database was away, every read waited for 15 seconds, so that clients and proxies gave
// up. Reads wait only while it has just gone.
func TestReadsDoNotWaitInALongOutage(t *testing.T) {
	t.Parallel()
	s := openComplete(t)
	tries := 0
	away := func(context.Context) (int, error) { tries++; return 0, errors.New("no connection") }
	for _, c := range []struct {
		when  string
		waits bool
	}{{"just gone", true}, {"away for long", false}, {"still away", false}} {
		tries = 0
		if err := s.Read(t.Context(), away); domain.CodeOf(err) != domain.CodeServiceUnavailable {
			t.Fatalf("%s: got %v, want service_unavailable", c.when, err)
		}
		if (tries > 1) != c.waits {
			t.Errorf("%s: got %d tries, want more than one: %v", c.when, tries, c.waits)
		}
	}
	if err := s.Read(
		t.Context(), func(context.Context) (int, error) { return 1, nil },
	); err != nil || s.Away() {
		t.Errorf("an answer: got %v, want the outage to be over", err)
	}
}

// A process that was started while the database was away did not serve, and failed after minutes,
// though commands and events need no database.
func TestStoreOpensWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	dir := filepath.Join(t.TempDir(), "postgres")
	c := startServer(t, dir)
	w.URL = c.URL()
	streamstest.Must(t, c.Stop(t.Context()))
	s := w.OpenStore(t)
	last := w.AddSite(t, org, 1)
	if _, err := s.Sites(
		t.Context(), domain.Reach{OrgID: org}, 50, "",
	); domain.CodeOf(err) != domain.CodeServiceUnavailable {
		t.Errorf("Sites: got %v, want service_unavailable", err)
	}
	// A change does not wait for the read models either.
	if err := s.WaitFor(t.Context(), last); err == nil {
		t.Error("WaitFor: got nil, want an error")
	}
	if s.Ready(t.Context()) == nil {
		t.Error("Ready: got nil, want an error")
	}
	if _, err := s.AccessSnapshot(t.Context()); err == nil {
		t.Error("AccessSnapshot: got nil, want an error")
	}
	select {
	case <-s.Claimed():
		t.Error("the database is claimed before it runs")
	default:
	}
	startServer(t, dir)
	<-s.Claimed()
	w.Project(t, s)
	streamstest.Eventually(t, "the store is ready", func() bool { return s.Ready(t.Context()) == nil })
	projectionstest.Await(t, s, last)
	if page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, ""); err != nil || len(page.Data) != 1 {
		t.Errorf("Sites: got %+v, %v, want one", page, err)
	}
}

// The read models of a database that was replaced by an empty one were read before they were built
// again: lists lacked items, and what exists was answered not_found.
func TestReplacedDatabaseIsNotReadBeforeItIsBuilt(t *testing.T) {
	t.Parallel()
	w := projectionstest.New(t)
	s := w.OpenStore(t)
	stop := w.Project(t, s).Stop
	last := w.AddSite(t, org, 1)
	projectionstest.Await(t, s, last)
	stop()
	projectionstest.Execute(t, w.URL, "DROP SCHEMA hubcloud, "+s.Schema()+" CASCADE")
	projectionstest.Execute(
		t, w.URL, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "+
			"current_database() AND pid <> pg_backend_pid()",
	)
	streamstest.Eventually(t, "reads fail", func() bool {
		_, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, "")
		return domain.CodeOf(err) == domain.CodeServiceUnavailable
	})
	w.Project(t, s)
	streamstest.Eventually(t, "reads are answered again", func() bool {
		page, err := s.Sites(t.Context(), domain.Reach{OrgID: org}, 50, "")
		if err == nil && len(page.Data) != 1 {
			t.Fatalf("Sites: got %+v, want one", page)
		}
		return err == nil
	})
}
