package projector_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// verify compares the states in use with those that are built from the journals. It returns the
// differences as "table key what column", in order.
func (e *env) verify(t *testing.T) (differences []string) {
	t.Helper()
	_, all := projectionstest.Verify(t, e.Control(t))
	for _, d := range all {
		text := d.Table
		for _, column := range d.Key {
			text += " " + column.Value
		}
		text += " " + d.What
		if d.What == rebuild.DifferenceChanged {
			text += " " + d.Column
		}
		differences = append(differences, text)
	}
	slices.Sort(differences)
	return differences
}

// Verify finds every difference and nothing else, and a rebuild repairs them, while hubs report,
// some are ahead of others, and while the states can be read.
func TestRebuildAndVerify(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.addHub(t, org, 1)
	e.addHub(t, org, 2)
	e.addHub(t, org, 3)
	e.project(t, func(cfg *projector.Config) { cfg.MaxRows = 1 })
	start := e.at
	for n := range 20 {
		e.commit(t, observed(1, int64(n), start, "lock", "true"), observed(2, int64(n), start, "co", "false"))
	}
	e.await(t, "states")
	stopReports := streamstest.Run(t, "reports", func(ctx context.Context) error {
		for n := 0; ctx.Err() == nil; n++ {
			at, value := start.Add(time.Duration(n)*time.Second), fmt.Sprint(n)
			e.commit(t, observed(2, 30, at, "power", value), observed(3, 30, at, "power", value))
			schema.Pause(ctx, 10*time.Millisecond) // reports must not outrun a rebuild
		}
		return nil
	})
	if got := e.verify(t); len(got) > 0 {
		t.Errorf("before the damage: got differences %q, want none", got)
	}
	for _, damage := range []string{
		"UPDATE reported_channels SET value = 'false' WHERE hub_id = '%s' AND device_id < 2",
		"DELETE FROM reported_channels WHERE hub_id = '%s' AND device_id = 3",
		"UPDATE reported_devices SET device_id = 99 WHERE hub_id = '%s' AND device_id = 4",
		"UPDATE reported_hubs SET certain = NOT certain WHERE hub_id = '%s'",
	} {
		projectionstest.Execute(t, e.URL, "SET search_path = "+e.store.Schema()+"; "+fmt.Sprintf(damage, hub))
	}
	want := []string{
		fmt.Sprintf("reported_channels %s 0 lock 0 changed value", hub),
		fmt.Sprintf("reported_channels %s 1 lock 0 changed value", hub),
		fmt.Sprintf("reported_channels %s 3 lock 0 missing", hub),
		fmt.Sprintf("reported_devices %s 4 missing", hub),
		fmt.Sprintf("reported_devices %s 99 extra", hub),
		fmt.Sprintf("reported_hubs %s changed certain", hub),
	}
	if got := e.verify(t); !slices.Equal(got, want) {
		t.Errorf("after the damage: got differences %q, want %q", got, want)
	}
	stopReads := streamstest.Run(t, "reads", func(ctx context.Context) error {
		for ctx.Err() == nil {
			page, err := e.store.States(
				ctx, domain.Reach{OrgID: org}, domain.StateFilter{}, 1000, domain.StatePosition{},
			)
			if ctx.Err() == nil && (err != nil || len(page.Data) < 38) {
				return fmt.Errorf("%d states during a rebuild: %w", len(page.Data), err)
			}
		}
		return nil
	})
	control := e.Control(t)
	for range 3 {
		streamstest.Must(t, control.Rebuild(t.Context(), nil))
	}
	stopReads()
	if got := e.verify(t); len(got) > 0 {
		t.Errorf("after the rebuilds: got differences %q, want none", got)
	}
	stopReports()
	e.commit(t, observed(1, 3, e.at, "battery", "7"))
	e.await(t, "states after the rebuilds")
}

// What hubs reported so long ago that the journal no longer has it is in the snapshots: rebuilt
// states equal those in use.
func TestRebuildFromSnapshots(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addHub(t, org, 1)
	e.project(t, nil)
	e.commit(
		t, observed(1, 1, e.at, "lock", "true"), observed(1, 2, e.at, "smoke", "false"),
		event(1, "channel.desired", 1, e.at, `{"key":"lock","endpoint":0,"value":false}`),
		event(1, "device.unavailable", 2, e.at, `{}`),
		observed(1, 3, e.at, "alarm", `{"type":"Smoke Alarm","event":"Smoke detected","active":true}`),
		observed(1, 3, e.at, "alarm", `{"type":"System","event":"Heartbeat","active":true}`),
	)
	first := e.index.Position()
	e.await(t, "states of the events")
	e.snapshots(t)
	streamstest.Expire(t, e.Conns.Cloud, streams.JournalStream(0), 1)
	if _, kept, err := e.Journal.StoredAt(t.Context(), 0, first); kept || err != nil {
		t.Fatalf("commit %d: kept %t, %v; want it gone", first, kept, err)
	}
	if got := e.verify(t); len(got) > 0 {
		t.Errorf("differences of states of expired events: %q, want none", got)
	}
	streamstest.Must(t, e.Control(t).Rebuild(t.Context(), nil))
	if got := e.states(t, org, domain.StateFilter{}); len(got) != 3 || !e.same(t) ||
		len(got[2].Standing) != 1 {
		t.Errorf("states after the rebuild: %+v, want those of the expired events", got)
	}
}

// snapshots stores a snapshot of each hub.
func (e *env) snapshots(t *testing.T) {
	t.Helper()
	for _, hub := range slices.Sorted(maps.Keys(e.expected)) {
		payloads, err := e.expected[hub].MarshalSnapshot()
		streamstest.Must(t, err)
		e.at = e.at.Add(time.Microsecond)
		e.seqs[hub]++
		r := journal.Record{
			Hub: hub, Kind: journal.KindState, Seq: e.seqs[hub], Time: e.at,
			EpochID: e.expected[hub].EpochID, OrgID: org, Payload: payloads[0],
		}
		err = e.expected[hub].Fold(devicestate.Entry{Seq: r.Seq, Time: r.Time, State: r.Payload})
		streamstest.Must(t, err)
		c, err := e.writer.Commit(t.Context(), []journal.Record{r}, e.index.Tip)
		streamstest.Must(t, err)
		streamstest.Must(t, e.index.Apply(c))
	}
}
