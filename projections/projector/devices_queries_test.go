package projector_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/streams/streamstest"
)

func TestStateFilters(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	one, two := e.addHub(t, org, 1), e.addHub(t, org, 2)
	e.project(t, nil)
	start := e.at
	e.commit(t,
		observed(1, 1, start, "lock", "true"), observed(1, 1, start, "battery", "9"),
		observed(2, 1, start.Add(365*24*time.Hour), "lock", "false"), // its clock is a year ahead
		event(2, "channel.desired", 1, start, `{"key":"lock","endpoint":0,"value":true}`),
		event(2, "device.unavailable", 1, start, `{}`),
	)
	e.at = e.at.Add(time.Hour)
	e.commit(t, observed(1, 2, start.Add(-365*24*time.Hour), "lock", "false")) // a year behind
	e.await(t, "all states")
	for name, tc := range map[string]struct {
		filter domain.StateFilter
		want   []string
	}{
		"nothing": {domain.StateFilter{}, []string{
			fmt.Sprint(one, "/1/battery"), fmt.Sprint(one, "/1/lock"), fmt.Sprint(one, "/2/lock"),
			fmt.Sprint(two, "/1/lock"),
		}},
		"site": {domain.StateFilter{SiteID: new(projectionstest.SiteID(2))}, nil},
		"hub":  {domain.StateFilter{HubID: &two}, []string{fmt.Sprint(two, "/1/lock")}},
		"key": {
			domain.StateFilter{Key: new("battery")}, []string{fmt.Sprint(one, "/1/battery")},
		},
		"value": {domain.StateFilter{Value: new(true)}, []string{fmt.Sprint(one, "/1/lock")}},
		"status": {
			domain.StateFilter{Status: new(domain.ChannelPending)},
			[]string{fmt.Sprint(two, "/1/lock")},
		},
		"available": {
			domain.StateFilter{Available: new(false)}, []string{fmt.Sprint(two, "/1/lock")},
		},
		"key and value": {
			domain.StateFilter{Key: new("lock"), Value: new(false), HubID: &one},
			[]string{fmt.Sprint(one, "/2/lock")},
		},
		"observed_before": {
			domain.StateFilter{ObservedBefore: new(start.Add(time.Minute)), Key: new("lock")},
			[]string{fmt.Sprint(one, "/1/lock"), fmt.Sprint(two, "/1/lock")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			after := domain.StatePosition{}
			for { // one item a page
				page, err := e.store.States(t.Context(), domain.Reach{OrgID: org}, tc.filter, 1, after)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range page.Data {
					got = append(got, fmt.Sprintf("%s/%d/%s", s.HubID, s.DeviceID, s.Channel.Key))
				}
				if !page.HasMore {
					break
				}
				after = page.Next
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("states are %q, want %q", got, tc.want)
			}
		})
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
	conn, err := pgx.ConnectConfig(t.Context(), e.store.ConnConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var updates int64
	const query = "SELECT pg_stat_force_next_flush(), " +
		"(SELECT n_tup_upd FROM pg_stat_all_tables WHERE relid = 'reported_channels'::regclass)"
	if err := conn.QueryRow(t.Context(), query).Scan(nil, &updates); err != nil {
		t.Fatal(err)
	}
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
