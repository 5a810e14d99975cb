package projector_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams/streamstest"
)

// Regression: a projector that hung while another took over deleted states that the other had
// written, and whose events it never read again. So did one that an operator had stopped.
func TestOnlyTheLatestTermDeletesStates(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.at = e.at.Add(-time.Hour) // long enough ago for a released hub
	stop := e.project(t, nil)
	e.commit(t, observed(3, 1, e.at, "lock", "true")) // a hub that no organization has
	conn, err := pgx.ConnectConfig(t.Context(), e.store.ConnConfig())
	streamstest.Must(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	count := func(sql string) (n int) {
		t.Helper()
		streamstest.Must(t, conn.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	const states = "SELECT count(*) FROM reported_hubs"
	streamstest.Eventually(t, "the states", func() bool { return count(states) == 1 })
	// Nothing is deleted while the directory is ahead of the read models, nor before their first build
	// is complete.
	const projected = "SELECT coalesce(max(sequence), 0) FROM checkpoints " +
		"WHERE projection = 'directory'"
	const live = "SELECT count(*) FROM hubcloud.schemas " +
		"WHERE name = current_schema() AND state = 'live'"
	streamstest.Eventually(t, "the read models are complete", func() bool {
		return count(projected) == int(e.Head(t)) && count(live) == 1
	})
	stop()

	old, err := projector.TakeOver(t.Context(), conn)
	streamstest.Must(t, err)
	term, err := projector.TakeOver(t.Context(), conn)
	streamstest.Must(t, err)
	var at projector.Checkpoint
	err = conn.QueryRow(
		t.Context(), "SELECT sequence, event_id FROM checkpoints WHERE projection = 'devices/0'",
	).Scan(&at.Sequence, &at.EventID)
	streamstest.Must(t, err)
	p := newProjector(t, e.Env, e.store)
	rejected := func(who string, term int64, at projector.Checkpoint) {
		t.Helper()
		// Without an answer from the directory's stream it deletes nothing, until the next time.
		streamstest.EventuallyNil(t, "DeleteReleased of "+who+" is rejected", func() error {
			hubs, err := p.DeleteReleased(t.Context(), term)
			if !errors.Is(err, projector.ErrMoved) {
				return fmt.Errorf("got %q, %v, want errMoved", hubs, err)
			}
			return nil
		})
		_ = p.EmptyStates(t.Context(), conn, term, at) // always fails with errMoved
		if got := count(states); got != 1 {
			t.Fatalf("hubs with states after %s: %d, want 1", who, got)
		}
	}
	rejected("an old term", old, at)
	control := e.Control(t)
	streamstest.Must(t, control.Stop(t.Context(), []string{schema.Devices}, ""))
	rejected("a stop", term, at)
	streamstest.Must(t, control.Resume(t.Context(), []string{schema.Devices}))
	_ = p.EmptyStates(t.Context(), conn, term, projector.Checkpoint{Sequence: at.Sequence + 1})
	if got := count(states); got != 1 {
		t.Errorf("hubs with states after the checkpoint has moved: %d, want 1", got)
	}

	streamstest.EventuallyNil(t, "the hub is deleted", func() error {
		hubs, err := p.DeleteReleased(t.Context(), term)
		if err != nil || len(hubs) != 1 {
			return fmt.Errorf("got %q, %v, want the hub", hubs, err)
		}
		return nil
	})
	if err := p.EmptyStates(t.Context(), conn, term, at); !errors.Is(err, projector.ErrMoved) {
		t.Errorf("EmptyStates: got %v, want errMoved", err)
	}
	const begun = "SELECT count(*) FROM checkpoints " +
		"WHERE projection = 'devices/0' AND sequence = 0 AND event_id = '' AND NOT built"
	if count(begun) != 1 {
		t.Error("the checkpoint of the emptied states is not at the begin")
	}
}
