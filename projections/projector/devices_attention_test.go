package projector_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/domain/attention"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// TestStatesNeedingAttention compares the conditions of the rows that the query selects with those
// of all rows: the query may select too much, but nothing too little.
func TestStatesNeedingAttention(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hub := e.addHub(t, org, 1)
	e.addHub(t, other, 2)
	e.project(t, nil)
	at := time.Now().Add(-time.Hour).UTC()
	values := map[string][]string{
		"smoke": {"true", "false"}, "co": {"true"}, "heat": {"true"}, "leak": {"true"},
		"tamper": {"true"}, "contact": {"true"}, "temperature": {"5"},
		"battery": {
			"0", "3", "9.5", "19", "19.99", "1.5e1", "20", "20.0", "87", "100", "-1", "null", `"x"`,
			"1e2", "2e1", "190",
		},
		"alarm": {
			`{"type":"lock","event":"jammed","active":true}`,
			`{"type":"lock","event":"jammed","active":false}`,
			`{"type":"access_control","event":"keypad_code_accepted","active":true,"user":2}`,
		},
	}
	var records []journal.Record
	device := int64(0)
	for key, all := range values {
		for _, value := range all {
			device++
			records = append(records, observed(1, device, at, key, value))
		}
	}
	device++ // smoke, and a heartbeat
	records = append(
		records, observed(1, device, at, "alarm", `{"type":"Smoke Alarm","event":"Smoke detected","active":true}`),
		observed(1, device, at, "alarm", `{"type":"System","event":"Heartbeat","active":true}`),
	)
	device++ // a lock that does not lock
	records = append(
		records, observed(1, device, at, "lock", "false"),
		event(1, "channel.desired", device, at.Add(time.Second), `{"key":"lock","endpoint":0,"value":true}`),
		observed(1, device, at.Add(2*time.Second), "lock", "false"),
	)
	device++ // a device that is out of reach
	records = append(
		records, observed(1, device, at, "temperature", "7"),
		event(1, "device.unavailable", device, at.Add(time.Second), `{}`),
		observed(2, 1, at, "smoke", "true"),
	)
	e.commit(t, records...)
	var all []domain.ReportedState
	streamstest.Eventually(t, "all states are there", func() bool {
		all = e.states(t, org, domain.StateFilter{})
		return len(all) == int(device)
	})
	conditions := func(states []domain.ReportedState) []attention.Condition {
		return attention.Of(attention.HubState{
			ID: hub, Known: at, Status: domain.HubOnline, Devices: attention.Devices(states),
		})
	}
	selected, err := e.store.StatesNeedingAttention(t.Context(), org, "", "")
	streamstest.Must(t, err)
	got, want := conditions(selected), conditions(all)
	if len(want) < 15 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %s\nwant %s", brief(got), brief(want))
	}
	for _, c := range []struct {
		org, find string
		want      int
	}{
		{org, strings.ToUpper(string(hub)), 5}, {org, "  ", 5}, {org, "\x00no such device", 0},
		{other, string(hub), 0}, {other, string(hubID(2)) + " 1", 1}, {org, "_%", 0},
	} {
		found, err := e.store.FindDevices(t.Context(), c.org, c.find, nil, 5)
		if err != nil || len(found) != c.want {
			t.Errorf("find %q: got %+v, %v, want %d devices", c.find, found, err, c.want)
		}
	}
	found, err := e.store.FindDevices(
		t.Context(), other, "", []string{"lock", "smoke", "temperature"}, 5,
	)
	if err != nil || len(found) != 1 || found[0].Key != "smoke" || string(found[0].Value) != "true" ||
		found[0].ChangedAt == nil {
		t.Errorf("got %+v, %v, want that the device reports smoke", found, err)
	}
	for name, c := range map[string]struct {
		org, site string
		hub       domain.HubID
		want      int
	}{
		"its site":               {org, siteID(1), "", len(selected)},
		"its hub":                {org, "", hub, len(selected)},
		"another site":           {org, siteID(2), "", 0},
		"another hub":            {org, "", hubID(2), 0},
		"another organization":   {other, "", "", 1},
		"a hub of another owner": {other, "", hub, 0},
		"text that is no id":     {org, "\x00", "", 0},
	} {
		states, err := e.store.StatesNeedingAttention(t.Context(), c.org, c.site, c.hub)
		if err != nil || len(states) != c.want {
			t.Errorf("%s: got %d states, %v, want %d", name, len(states), err, c.want)
		}
	}
}

// The states of all hubs waited until a flood of one organization's was written. Hubs have turns,
// organization by organization, and the ones that report an alarm come first.
func TestStatesAreWrittenInTurns(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const flooding = 8
	for n := range flooding {
		e.addHub(t, org, n+1)
	}
	e.addHub(t, org, flooding+1)
	innocent := e.addHub(t, other, flooding+2)
	var records []journal.Record
	for n := range flooding {
		for device := range int64(5) {
			records = append(records, observed(n+1, device, e.at, "battery", "5"))
		}
	}
	alarm := observed(flooding+2, 1, e.at, "smoke", "true")
	alarm.OrgID = other
	e.commit(t, append(
		records, observed(flooding+1, 1, e.at, "battery", "5"),
		observed(1, 7, e.at, "smoke", "true"), alarm,
	)...)
	conn, err := pgx.ConnectConfig(t.Context(), e.store.ConnConfig())
	streamstest.Must(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "LISTEN "+schema.AttentionChannel); err != nil {
		t.Fatal(err)
	}
	e.project(t, func(cfg *projector.Config) { cfg.MaxRows = 1 })
	place := map[domain.HubID]int{}
	for len(place) < flooding+2 {
		received, err := conn.WaitForNotification(t.Context())
		streamstest.Must(t, err)
		hubs, urgent := schema.ReadAnnouncement(received.Payload)
		for _, hub := range hubs {
			place[hub] = len(place)
			if alarming := hub == innocent || hub == hubID(1); urgent != alarming {
				t.Errorf("the announcement of %s: urgent is %t", hub, urgent)
			}
		}
	}
	if place[innocent] > 1 || place[hubID(1)] > 1 {
		t.Errorf("hubs were written in the order %v, want the alarms of %s and hub 1 first", place, innocent)
	}
}

// One organization whose devices report alarms on end made every round of alarm mails read all of
// them, and others' mails wait.
func TestObservedHubsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addHub(t, org, 1)
	attacker := e.addHub(t, other, 2)
	e.project(t, nil)
	e.commit(
		t, observed(1, 1, e.at, "smoke", "true"), observed(2, 1, e.at, "smoke", "true"),
	)
	observe := func() map[string]int {
		states := map[string]int{}
		for _, id := range []string{org, other} {
			hubs, err := e.store.ObserveOrg(t.Context(), id, nil)
			if err != nil && domain.CodeOf(err) != domain.CodeServiceUnavailable {
				t.Fatal(err)
			}
			for _, h := range hubs {
				states[id] += len(h.States)
			}
		}
		return states
	}
	streamstest.Eventually(t, "both hubs report smoke", func() bool {
		got := observe()
		return got[org] == 1 && got[other] == 1
	})
	projectionstest.Execute(t, e.URL, fmt.Sprintf(`
		SET search_path = %s;
		INSERT INTO reported_devices SELECT (jsonb_populate_record(d, jsonb_build_object('device_id', n))).*
			FROM reported_devices d, generate_series(2, 7000) n WHERE hub_id = '%s';
		INSERT INTO reported_channels SELECT (jsonb_populate_record(c, jsonb_build_object(
				'device_id', n, 'key', 'lock', 'status', 'failed'))).*
			FROM reported_channels c, generate_series(2, 7000) n WHERE hub_id = '%s'`,
		e.store.Schema(), attacker, attacker,
	))
	if got := observe(); got[org] != 1 || got[other] != 5000 {
		t.Errorf("got %v states, want 1 of %s and 5000 of %s", got, org, other)
	}
}

func brief(conditions []attention.Condition) (text string) {
	for _, c := range conditions {
		text += fmt.Sprintf("%s %s; ", c.ID, c.Value)
	}
	return text
}
