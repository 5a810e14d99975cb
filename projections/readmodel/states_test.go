package readmodel_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/streamstest"
)

// A request for states that a filter rarely selects looked at all channels of the organization.
func TestStatesLookAtFewChannels(t *testing.T) {
	t.Parallel()
	w, s := projectionstest.NewProjected(t)
	projectionstest.Await(t, s, w.AddSite(t, org, 1))
	streamstest.Eventually(t, "complete states", func() bool {
		_, err := s.States(t.Context(), domain.Reach{OrgID: org}, domain.StateFilter{}, 1, domain.StatePosition{})
		return err == nil
	})
	// Of each organization 6 hubs with 9,000 channels, of which the last one of each hub differs.
	const hubs, channels = 6, 9000
	projectionstest.Execute(t, w.URL, fmt.Sprintf(`
		SET search_path = %s;
		INSERT INTO hubs SELECT 'hub-'||lpad(n::text, 3, '0'), CASE WHEN n <= %[2]d THEN '%[4]s' ELSE 'other' END,
			'site', NULL, now(), true, 'e', 0, '' FROM generate_series(1, 2 * %[2]d) n;
		INSERT INTO reported_hubs (hub_id, journal, epoch, seq, event_seq, at, since, doubt, doubt_number,
				read_after, read_number, was_read, forgotten, certain, channels, omitted)
			SELECT id, 0, 'e', 1, 1, now(), now(), 0, 0, 0, 0, true, '[]', true, %[3]d, 0 FROM hubs;
		INSERT INTO reported_devices (hub_id, device_id, name, manufacturer, model, available, available_logged,
				doubt, doubt_number, read_after, read_number, was_read, named_seq, named_number,
				reached_seq, reached_number, event_seq, event_number, seq, certain)
			SELECT id, n, '', '', '', true, 0, 0, 0, 0, 0, true, 0, 0, 0, 0, 0, 0, 1, true
			FROM hubs, generate_series(1, %[3]d / 100) n;
		INSERT INTO reported_channels (hub_id, device_id, key, endpoint, was_read, kind, readable, writable,
				available, value, observed_at, status, suspect, unsure, basis, observed_logged, changed_logged,
				desired_logged, seq, event_seq, event_number)
			SELECT hub_id, device_id, CASE WHEN rare THEN 'lock' ELSE 'switch' END, n, true, 'switch', true, true,
				NOT rare, rare::text, now(), CASE WHEN rare THEN 'pending' ELSE 'synchronized' END, rare, false, 'event',
				CASE WHEN rare THEN 0 ELSE 2e18 END, 1, 1, 1, 1, 1
			FROM reported_devices, generate_series(1, 100) n,
				LATERAL (SELECT device_id * 100 + n = %[3]d + 100 AS rare) of_channel`,
		s.Schema(), hubs, channels, org,
	))
	for name, tc := range map[string]struct {
		filter domain.StateFilter
		found  int
	}{
		"key":       {domain.StateFilter{Key: new("lock")}, hubs},
		"value":     {domain.StateFilter{Value: new(true)}, hubs},
		"status":    {domain.StateFilter{Status: new(domain.ChannelPending)}, hubs},
		"available": {domain.StateFilter{Available: new(false)}, hubs},
		"observed_before": {
			domain.StateFilter{ObservedBefore: new(time.Unix(1e9, 0))}, hubs,
		},
		"what no channel has": {
			domain.StateFilter{Value: new(false), Status: new(domain.ChannelPending)}, 0,
		},
		"site":               {domain.StateFilter{SiteID: new("site"), Key: new("lock")}, hubs},
		"hub":                {domain.StateFilter{HubID: new(domain.HubID("hub-002")), Key: new("lock")}, 1},
		"no hub of the site": {domain.StateFilter{SiteID: new("no site")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var after domain.StatePosition
			found := 0
			for pages := 1; ; pages++ {
				plan, err := s.ExplainStates(t.Context(), org, tc.filter, 100, after)
				streamstest.Must(t, err)
				if n := lookedAt(t, plan); n > 40_000 {
					t.Errorf("page %d looked at %v channels, want at most 40000", pages, n)
				}
				page, err := s.States(t.Context(), domain.Reach{OrgID: org}, tc.filter, 100, after)
				streamstest.Must(t, err)
				found, after = found+len(page.Data), page.Next
				if !page.HasMore {
					break
				}
				if pages > hubs {
					t.Fatalf("the list has more than %d pages", pages)
				}
			}
			if found != tc.found {
				t.Errorf("found %d states, want %d", found, tc.found)
			}
		})
	}
	// A page without a filter is full.
	var after domain.StatePosition
	for i := range 3 {
		plan, err := s.ExplainStates(t.Context(), org, domain.StateFilter{}, 500, after)
		streamstest.Must(t, err)
		page, err := s.States(t.Context(), domain.Reach{OrgID: org}, domain.StateFilter{}, 500, after)
		if err != nil || len(page.Data) != 500 || !page.HasMore {
			t.Fatalf("page %d: got %d states, %v, want 500 and more", i, len(page.Data), err)
		}
		if n := lookedAt(t, plan); n > 40_000 {
			t.Errorf("page %d looked at %v channels, want at most 40000", i, n)
		}
		after = page.Next
	}
}

// planNode is a step of a plan. Counts are of each of its Loops.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Recheck  float64    `json:"Rows Removed by Index Recheck"`
	Plans    []planNode `json:"Plans"`
}

// lookedAt returns how many rows of channels a plan has read.
func lookedAt(t *testing.T, plan []byte) float64 {
	t.Helper()
	var explained []struct{ Plan planNode }
	streamstest.Must(t, json.Unmarshal(plan, &explained))
	scans := 0
	var sum func(n planNode) float64
	sum = func(n planNode) (rows float64) {
		if n.Relation == "reported_channels" {
			scans++
			rows = (n.Rows + n.Filtered + n.Recheck) * n.Loops
		}
		for _, below := range n.Plans {
			rows += sum(below)
		}
		return rows
	}
	rows := sum(explained[0].Plan)
	if scans == 0 {
		t.Fatal("the plan reads no channels")
	}
	return rows
}
