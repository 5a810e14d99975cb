package portal

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

func text(s string) *string { return &s }

// TestDevicesByRoom checks the order of rooms, and that a device that does not answer is listed
// without values.
func TestDevicesByRoom(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	observed := "2026-01-02T03:04:05.000000Z"
	lock := domain.Channel{
		Key: "lock", Kind: "lock", Readable: true, Writable: true, Available: true,
		Value: json.RawMessage("false"), Desired: json.RawMessage("true"),
		ObservedAt: &observed, Status: domain.ChannelDiverged,
	}
	gang := func(endpoint int64) domain.Channel {
		return domain.Channel{
			Key:       "switch",
			Endpoint:  endpoint,
			Writable:  true,
			Available: true,
			Value:     json.RawMessage("true"),
		}
	}
	r.devices = []domain.Device{
		{ID: 1, Name: "Lock", Channels: []domain.Channel{lock}},
		{ID: 2, Name: "Gangs", Channels: []domain.Channel{gang(1), gang(2)}},
		{
			ID:   3,
			Name: "Sensor",
			Channels: []domain.Channel{
				{
					Key:       "temperature",
					Unit:      text("°C"),
					Value:     json.RawMessage("21.456"),
					Available: false,
				},
			},
		},
		{ID: 4, Name: "Gone", Channels: []domain.Channel{}},
		{ID: 5, Name: "New", Channels: []domain.Channel{{Key: "lock", Writable: true}}},
	}
	r.labels = map[int64]domain.DeviceLabel{
		1: {Name: text("Front door"), Room: text("hall")},
		3: {Room: text("Attic")},
	}
	r.errs[4] = domain.Errorf(domain.CodeHubTimeout, "no answer")
	list, err := r.live.listDevices(t.Context(), "org", hubA, devicesRequest{})
	if err != nil || list.Late || list.Total != 5 || list.Pages != 1 {
		t.Fatalf("got %+v, %v, want 5 devices on one page", list, err)
	}
	rooms := list.Rooms
	if len(rooms) != 3 || rooms[0].Name != "Attic" || rooms[1].Name != "hall" ||
		rooms[2].Name != "" {
		t.Fatalf("got rooms %+v, want Attic, hall and none", rooms)
	}
	front := rooms[1].Devices[0]
	c := front.Channels[0]
	if front.Name != "Front door" || front.Reported != "Lock" || c.Text != "unlocked" ||
		c.DesiredText != "locked" ||
		c.StatusText == "" ||
		c.Control.Kind != "guarded" ||
		c.Control.IsOn ||
		c.ObservedAt.IsZero() {
		t.Errorf("got lock %+v, want its label, texts, status and a guarded control", front)
	}
	sensor := rooms[0].Devices[0]
	if sensor.Available || sensor.Channels[0].Text != "21.46 °C" ||
		sensor.Channels[0].Control.Kind != "" {
		t.Errorf("got sensor %+v, want it unavailable at 21.46 °C without a control", sensor)
	}
	if gangs := rooms[2].Devices[0]; gangs.Channels[0].Label != "Switch 1" ||
		!gangs.Channels[0].Control.IsOn {
		t.Errorf("got gangs %+v, want Switch 1, on", gangs)
	}
	if gone := rooms[2].Devices[1]; gone.Failure == "" {
		t.Errorf("got device %+v, want a failure", gone)
	}
	// A lock with an unknown value could only be locked, not unlocked.
	if lock := rooms[2].Devices[2].Channels[0].Control; !lock.Unknown || c.Control.Unknown {
		t.Errorf("got control %+v of a lock without a value, want it unknown", lock)
	}
	r.errs[0] = domain.Errorf(domain.CodeHubOffline, "offline")
	_, err = r.live.listDevices(t.Context(), "org", hubA, devicesRequest{})
	if err != r.errs[0] {
		t.Errorf("ListDevices of an offline hub: got %v, want %v", err, r.errs[0])
	}
}

// The page of a hub with very many devices had megabytes and requested every device. Now a page has
// a bounded number of devices and requests only these. A search covers all pages.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	for id := range int64(1000) {
		r.devices = append(
			r.devices,
			domain.Device{
				ID:       id,
				Name:     "Sensor " + strconv.FormatInt(id, 10),
				Channels: []domain.Channel{},
			},
		)
	}
	r.labels = map[int64]domain.DeviceLabel{999: {Name: text("Cellar"), Room: text("Below")}}
	seen, pages := 0, 1
	for page := 0; page < pages; page++ {
		list, err := r.live.listDevices(t.Context(), "org", hubA, devicesRequest{Page: page})
		if err != nil || list.Total != 1000 || list.Found != 1000 || list.Page != page {
			t.Fatalf("page %d: got %+v, %v, want 1000 devices in all", page, list, err)
		}
		if page == 0 && list.Rooms[0].Name != "Below" {
			t.Errorf("got first room %q, want Below", list.Rooms[0].Name)
		}
		for _, room := range list.Rooms {
			seen += len(room.Devices)
		}
		pages = list.Pages
	}
	if requests := r.gets.Load(); seen != 1000 || requests != 1000 || pages < 10 {
		t.Errorf(
			"got %d devices on %d pages with %d requests, want 1000 on 10 or more with 1000", seen,
			pages, requests,
		)
	}
	list, err := r.live.listDevices(
		t.Context(), "org", hubA, devicesRequest{Find: "cellar", Page: 7},
	)
	if err != nil || list.Found != 1 || list.Rooms[0].Devices[0].ID != 999 || list.Page != 0 {
		t.Errorf("search for cellar: got %+v, %v, want device 999", list, err)
	}
}

// A slow hub delayed its whole page. Now the page lacks the devices or their values, and says so.
func TestSlowHub(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	r.devices = []domain.Device{{ID: 1, Name: "Lock", Channels: []domain.Channel{}}}
	r.slow = make(chan struct{})
	list, err := r.live.listDevices(
		t.Context(), "org", hubA, devicesRequest{Timeout: 2 * time.Second}, // more than a list takes
	)
	if err != nil || !list.Late || len(list.Rooms) != 1 || list.Rooms[0].Devices[0].Failure == "" {
		t.Errorf("slow values: got %+v, %v, want the device with a failure, late", list, err)
	}
	r.slowList = true
	list, err = r.live.listDevices(
		t.Context(), "org", hubA, devicesRequest{Timeout: 10 * time.Millisecond},
	)
	if err != nil || !list.Late {
		t.Errorf("slow list: got %+v, %v, want it late", list, err)
	}
	close(r.slow)
	list, err = r.live.listDevices(t.Context(), "org", hubA, devicesRequest{})
	if err != nil || list.Late || list.Rooms[0].Devices[0].Failure != "" {
		t.Errorf("after the delay: got %+v, %v, want the values", list, err)
	}
}

// TestReadCommand checks that readCommand accepts and rejects the same values as the API. "" stands
// for a rejection.
func TestReadCommand(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"key=lock&value=true":             "true",
		"key=heating_setpoint&value=21,5": "21.5",
		"key=mode&value=eco":              `"eco"`,
		"key=color&value=%23ff0080&warm_white=7": `{"red":255,"green":0,"blue":128,` +
			`"warm_white":7}`,
		"key=color&value=red":                                 "",
		"key=level&value=100":                                 "99",
		"key=mode&value=heat&other=dry":                       `"dry"`,
		"key=level&value=1,2,3":                               "",
		"key=lock&value=true&endpoint=-1":                     "",
		"key=lock&value=true&idempotency_key=":                "",
		"key=lock&value=" + url.QueryEscape(`{"a":true}`):     "",
		"key=switch&value=" + url.QueryEscape(`true}{`):       "",
		"key=fan_mode&value=" + url.QueryEscape(`a"b\c`):      `"a\"b\\c"`,
		"key=cooling_setpoint&value=" + url.QueryEscape(`-0`): "0",
	} {
		values, err := url.ParseQuery(form)
		streamstest.Must(t, err)
		if !values.Has("endpoint") {
			values.Set("endpoint", "0")
		}
		if !values.Has("idempotency_key") {
			values.Set("idempotency_key", "once")
		}
		command, err := readCommand("org", hubA, 1, values)
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %s, want an error", form, command.Value)
			}
			continue
		}
		if err != nil || string(command.Value) != want || command.HubID != hubA ||
			command.DeviceID != 1 ||
			command.IdempotencyKey != "once" {
			t.Errorf("%s: got %+v, %v, want %s", form, command, err, want)
		}
	}
}

// lastHour draws the charts of the last hour.
func (r *testLive) lastHour(device hubDevice) (deviceCharts, error) {
	now := r.live.Now()
	return r.live.drawCharts(r.t.Context(), device, now.Add(-time.Hour), now)
}

// TestChartPeriod reads periods from addresses of a device's page, at noon.
func TestChartPeriod(t *testing.T) {
	t.Parallel()
	p := New(Config{Retention: 24 * time.Hour})
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"":                   "1 h 11:00 to now",
		"hours=6":            "6 h 06:00 to now",
		"hours=25&from=soon": "1 h 11:00 to now",
		"from=2026-03-01T08:00&to=2026-03-01T09:30":               "08:00 to 09:30",
		"from=2026-03-01T08:00&zone=Europe/Berlin":                "07:00 to now",
		"to=2026-03-01T09:30":                                     "08:30 to 09:30",
		"from=2026-02-01T08:00&to=2026-03-02T09:30":               "12:00 to now",
		"from=2026-03-01T09:30:00Z&to=2026-03-01T09:30":           "wrong, 1 h 11:00 to now",
		"from=2026-03-01T13:00":                                   "wrong, 1 h 11:00 to now",
		"from=2026-02-01T08:00&to=2026-02-01T09:30&hours=6&zone=": "wrong, 6 h 06:00 to now",
	} {
		req := &request{
			Portal: p, http: httptest.NewRequest("GET", "/?"+query, nil), info: RequestInfo{At: noon},
		}
		period := req.chartPeriod(1)
		got := period.From.UTC().Format("15:04") + " to " + period.To.UTC().Format("15:04")
		if period.To.IsZero() {
			got = period.From.UTC().Format("15:04") + " to now"
		}
		if period.Hours > 0 {
			got = fmt.Sprint(period.Hours, " h ", got)
		}
		if period.PeriodWrong {
			got = "wrong, " + got
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// TestChartData checks what the page's script gets: scales that the unit fixes, peaks, and on/off
// channels, also those that did not change in the period.
func TestChartData(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	r.append(
		hubA, "channel.observed", 1, `{"key":"humidity","endpoint":0,"value":40}`,
		`{"key":"humidity","endpoint":0,"value":90}`, `{"key":"humidity","endpoint":0,"value":20}`,
		`{"key":"humidity","endpoint":0,"value":41}`, `{"key":"lock","endpoint":0,"value":true}`,
		`{"key":"lock","endpoint":0,"value":false}`,
		`{"key":"power","endpoint":0,"value":140}`,
		`{"key":"humidity","endpoint":1,"value":99}`, // another channel
	)
	r.append(hubA, "channel.observed", 2, `{"key":"humidity","endpoint":0,"value":99}`)
	device := hubDevice{Hub: hubA, ID: 1, Channels: []deviceChannel{
		{Key: "humidity", Value: "41", Unit: "%"}, {Key: "lock", Value: "false"},
		{Key: "contact", Value: "true", ObservedAt: time.Now().Add(-3 * time.Hour)},
		{Key: "power", Value: "140", Unit: "W"},
	}}
	charts, err := r.lastHour(device)
	if err != nil || len(charts.Charts) != 4 {
		t.Fatalf("got %+v, %v, want four charts", charts, err)
	}
	for i, want := range []struct {
		scale, values []float64
		last          string
	}{
		{[]float64{0, 100}, []float64{40, 90, 20, 41}, "41 %"},
		{[]float64{0, 1}, []float64{1, 0}, "unlocked"},
		{[]float64{0, 1}, []float64{1}, "open"},
		{nil, []float64{140}, "140 W"},
	} {
		got := charts.Charts[i].Data()
		if !slices.Equal(got.Scale, want.scale) || !slices.Equal(got.Values, want.values) ||
			len(got.Times) != len(got.Values) || charts.Charts[i].Last != want.last ||
			!slices.IsSorted(got.Times) {
			t.Errorf("%s: got %+v, last %q, want %+v", got.Key, got, charts.Charts[i].Last, want)
		}
	}
}

// The chart of a busy hub lacked the newest values. Now it is drawn from samples of the whole
// period and is marked as incomplete.
func TestChartOfBusyHub(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	const events = 25_000
	for from := 1; from <= events; from += 500 {
		r.append(hubA, "channel.observed", 1, levels(from, from+499)...)
	}
	observed := time.Now()
	device := hubDevice{
		Hub: hubA,
		ID:  1,
		Channels: []deviceChannel{
			{Key: "level", Label: "Level", Value: strconv.Itoa(events), ObservedAt: observed},
		},
	}
	charts, err := r.lastHour(device)
	if err != nil || len(charts.Charts) != 1 || charts.Complete {
		t.Fatalf("got %+v, %v, want one incomplete chart", charts, err)
	}
	if c := charts.Charts[0]; c.Low != "1 %" || c.High != strconv.Itoa(events)+" %" ||
		c.Last != strconv.Itoa(events)+" %" ||
		c.Count > 21_000 ||
		c.Count < 5_000 {
		t.Errorf(
			"got a chart from %s to %s, last %s, of %d values, want all of 5,000 to 21,000",
			c.Low, c.High, c.Last, c.Count,
		)
	}
}
