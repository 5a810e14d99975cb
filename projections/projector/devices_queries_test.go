package projector_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/projector"
	"hubcloud/streams/streamstest"
)

// What was observed before a time goes by the cloud's clock: those of hubs may be years off.
func TestObservedBefore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.addHub(t, org, 1)
	e.project(t, nil)
	start := e.at
	e.commit(t, observed(1, 1, start.Add(365*24*time.Hour), "lock", "true")) // a year ahead
	e.at = e.at.Add(time.Hour)
	e.commit(t, observed(1, 2, start.Add(-365*24*time.Hour), "lock", "false")) // a year behind
	e.await(t, "all states")
	before := start.Add(time.Minute)
	got := e.states(t, org, domain.StateFilter{HubID: &hub, ObservedBefore: &before})
	if len(got) != 1 || got[0].DeviceID != 1 {
		t.Errorf("observed before %s: got %+v, want device 1", before, got)
	}
}

// A channel that reports all the time costs one row update in a flush.
func TestWritesAreCoalesced(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.addHub(t, org, 1)
	e.project(t, func(cfg *projector.Config) { cfg.FlushInterval = 200 * time.Millisecond })
	begun := time.Now()
	for n := range 500 {
		e.commit(t, observed(1, 1, e.at, "power", fmt.Sprint(n)))
	}
	e.await(t, "the last value")
	flushes := int64(time.Since(begun)/(200*time.Millisecond)) + 1
	var updates int64
	const query = "SELECT pg_stat_force_next_flush(), " +
		"(SELECT n_tup_upd FROM pg_stat_all_tables WHERE relid = 'reported_channels'::regclass)"
	e.WithConn(t, e.store.Schema(), func(conn *pgx.Conn) {
		streamstest.Must(t, conn.QueryRow(t.Context(), query).Scan(nil, &updates))
	})
	if updates > flushes {
		t.Errorf("500 reports of %s made %d updates of the row, want at most %d", hub, updates, flushes)
	}
}

// What the cloud cannot know of a command is not certain, and the hub is to be asked about it.
func TestStatusInDoubt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.at = e.at.Add(-time.Hour) // the command has been pending for long
	hub := e.addHub(t, org, 1)
	e.project(t, nil)
	inDoubt := func() bool {
		hubs, err := e.store.HubsInDoubt(t.Context())
		if err != nil && domain.CodeOf(err) != domain.CodeServiceUnavailable {
			t.Fatal(err)
		}
		return slices.Contains(hubs, hub)
	}
	certain := func() bool {
		got := e.states(t, org, domain.StateFilter{})
		return len(got) == 1 && got[0].Certain
	}
	e.commit(t, observed(1, 1, e.at, "lock", "true"))
	streamstest.Eventually(t, "a hub that was never asked is in doubt", inDoubt)
	e.commit(t, read(t, 1, e.seqs[hub], "true"))
	streamstest.Eventually(t, "a certain state", certain)
	if inDoubt() {
		t.Error("a hub that was asked is in doubt")
	}
	e.commit(t, event(1, "channel.desired", 1, e.at, `{"key":"lock","endpoint":0,"value":false}`))
	streamstest.Eventually(t, "a command without an outcome", inDoubt)
	if certain() {
		t.Error("a command that is pending for an hour is certain")
	}
	e.commit(t, event(1, "channel.status", 1, e.at, `{"key":"lock","endpoint":0,"status":"failed"}`))
	streamstest.Eventually(t, "a failed command is certain", func() bool {
		got := e.states(t, org, domain.StateFilter{Status: new(domain.ChannelFailed)})
		return len(got) == 1 && got[0].Certain && !inDoubt()
	})
}
