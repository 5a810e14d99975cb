package devicestate_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams/streamstest"
)

var (
	epoch  = domain.NewEpochID(1)
	second = domain.NewEpochID(2)
	start  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// log makes entries of a log, each a second after the one before.
type log struct {
	epoch   domain.EpochID
	entries []devicestate.Entry
}

func newLog() *log { return &log{epoch: epoch} }

// next returns the sequence and the time of the next entry.
func (l *log) next() (uint64, time.Time) {
	n := len(l.entries) + 1
	return uint64(n), start.Add(time.Duration(n) * time.Second)
}

// event adds an event that happened at a time after start.
func (l *log) event(typ string, device int64, after time.Duration, data string) *log {
	seq, at := l.next()
	event := fmt.Sprintf(
		`{"type":%q,"hub_id":"hub-aaaa-aaaa-aaaa","device_id":%d,"time":%q,"clock_trusted":true,"data":%s}`,
		typ, device, domain.FormatTime(start.Add(after)), data,
	)
	l.entries = append(l.entries, devicestate.Entry{
		Seq: seq, Time: at, EpochID: l.epoch, Event: []byte(event),
	})
	return l
}

// observed adds a report of the channel switch that happened just before it was stored.
func (l *log) observed(device int64, value string) *log {
	return l.event("channel.observed", device, l.now(), channelData("switch", value))
}

func (l *log) desired(device int64, value string) *log {
	return l.event("channel.desired", device, l.now(), channelData("switch", value))
}

// now is the time of the next entry, as after start.
func (l *log) now() time.Duration {
	_, at := l.next()
	return at.Sub(start)
}

// skipped adds a gap.
func (l *log) skipped() *log {
	return l.event("hub.events_skipped", 0, l.now(), `{"from":1,"to":2}`)
}

// read adds a complete read that was asked for when the log ended with after.
func (l *log) read(t testing.TB, after uint64, devices ...devicestate.ReadDevice) *log {
	t.Helper()
	r := devicestate.Read{After: after, EpochID: l.epoch, Devices: devices, Complete: true}
	for _, d := range devices {
		r.All = append(r.All, d.ID)
	}
	records, err := devicestate.MarshalRead(r)
	streamstest.Must(t, err)
	l.state(records)
	return l
}

// state adds records of state.
func (l *log) state(records [][]byte) {
	for _, record := range records {
		seq, at := l.next()
		l.entries = append(l.entries, devicestate.Entry{Seq: seq, Time: at, State: record})
	}
}

func channelData(key, value string) string {
	return fmt.Sprintf(`{"key":%q,"endpoint":0,"value":%s}`, key, value)
}

// device returns a device with one switch, as its hub answers it.
func device(id int64, value string, observed time.Duration) devicestate.ReadDevice {
	at := domain.FormatTime(start.Add(observed))
	return devicestate.ReadOf(domain.Device{
		ID: id, Name: fmt.Sprintf("device %d", id), Manufacturer: "Acme", Model: "S1",
		Channels: []domain.Channel{{
			Key: "switch", Kind: "switch", Readable: true, Writable: true,
			Capabilities: json.RawMessage(`{}`), Available: true, Value: json.RawMessage(value),
			ObservedAt: &at, Status: domain.ChannelSynchronized,
		}},
	})
}

// fold folds the whole log from the beginning.
func (l *log) fold(t testing.TB) *devicestate.Hub {
	t.Helper()
	return foldAll(t, l.entries)
}

func foldAll(t testing.TB, entries []devicestate.Entry) *devicestate.Hub {
	t.Helper()
	h := new(devicestate.Hub)
	for _, e := range entries {
		if err := h.Fold(e); err != nil {
			t.Fatalf("Fold(%d) = %v", e.Seq, err)
		}
	}
	return h
}

// show describes a state: whether it is certain, and of each device the availability, whether it is
// certain, and its channels.
func show(h *devicestate.Hub) string {
	text := fmt.Sprintf("certain=%t", h.Certain())
	for _, d := range h.Devices {
		text += fmt.Sprintf(" | %d %q available=%t certain=%t", d.ID, d.Name, d.Available, d.Certain())
		for _, c := range d.Channels {
			text += fmt.Sprintf(" %s=%s %s %s", c.Key, c.Value, c.Status, c.Basis)
			if c.Desired != nil {
				text += " desired=" + string(c.Desired)
			}
			if c.Available != d.Available {
				text += fmt.Sprintf(" available=%t", c.Available)
			}
		}
	}
	return text
}

func TestFold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		log  *log
		want string
	}{
		"nothing": {newLog(), "certain=false"},
		"a report of a device that is not known": {
			newLog().observed(1, "true"),
			`certain=false | 1 "" available=true certain=false switch=true synchronized event`,
		},
		"a read": {
			newLog().skipped().read(t, 1, device(1, "true", 0)),
			`certain=true | 1 "device 1" available=true certain=true switch=true synchronized read`,
		},
		"a report after a read": {
			newLog().read(t, 0, device(1, "true", 0)).observed(1, "false"),
			`certain=true | 1 "device 1" available=true certain=true switch=false synchronized event`,
		},
		"a report by a clock that is behind that of the read": {
			newLog().read(t, 0, device(1, "true", -time.Second)).
				event("channel.observed", 1, -time.Minute, channelData("switch", "false")),
			`certain=true | 1 "device 1" available=true certain=true switch=false synchronized event`,
		},
		"a report during a read, by a clock that is behind that of the read": {
			newLog().skipped().event("channel.observed", 1, -time.Hour, channelData("switch", "false")).
				read(t, 1, device(1, "true", time.Hour)),
			`certain=true | 1 "device 1" available=true certain=true switch=false synchronized event`,
		},
		"a command by a clock that is behind that of the read": {
			newLog().read(t, 0, device(1, "true", time.Hour)).
				event("channel.desired", 1, -time.Hour, channelData("switch", "false")),
			`certain=true | 1 "device 1" available=true certain=true switch=true pending event ` +
				`desired=false`,
		},
		"a report a year ahead, and the next one": {
			newLog().event("channel.observed", 1, 365*24*time.Hour, channelData("switch", "true")).
				observed(1, "false"),
			`certain=false | 1 "" available=true certain=false switch=false synchronized event`,
		},
		"a read that is older than a report before it": {
			newLog().skipped().observed(1, "false").read(t, 1, device(1, "true", 0)),
			`certain=true | 1 "device 1" available=true certain=true switch=false synchronized event`,
		},
		"a read that was asked for after a report of a wrong clock": {
			newLog().event("channel.observed", 1, time.Hour, channelData("switch", "false")).
				read(t, 1, device(1, "true", 0)),
			`certain=true | 1 "device 1" available=true certain=true switch=true synchronized read`,
		},
		"a skip after a read": {
			newLog().read(t, 0, device(1, "true", 0)).skipped(),
			`certain=false | 1 "device 1" available=true certain=true switch=true synchronized read`,
		},
		"a skip between a read's question and its answer": {
			newLog().observed(1, "true").skipped().read(t, 1, device(1, "true", 0)),
			`certain=false | 1 "device 1" available=true certain=true switch=true synchronized read`,
		},
		"a command": {
			newLog().observed(1, "false").desired(1, "true"),
			`certain=false | 1 "" available=true certain=false switch=false pending event desired=true`,
		},
		"a command and another outcome": {
			newLog().desired(1, "true").observed(1, "false"),
			`certain=false | 1 "" available=true certain=false switch=false diverged event ` +
				`desired=true`,
		},
		"a color of which some components were asked": {
			newLog().event("channel.desired", 1, 0,
				channelData("color", `{"red":1,"green":2,"blue":3}`)).
				event("channel.observed", 1, 0,
					channelData("color", `{"red":1.0,"green":2,"blue":3,"warm_white":9}`)),
			`certain=false | 1 "" available=true certain=false ` +
				`color={"red":1.0,"green":2,"blue":3,"warm_white":9} synchronized event ` +
				`desired={"red":1,"green":2,"blue":3}`,
		},
		"a device that is unavailable": {
			newLog().read(t, 0, device(1, "true", 0)).event("device.unavailable", 1, 0, `{}`),
			`certain=true | 1 "device 1" available=false certain=true switch=true synchronized read`,
		},
		"a device that was forgotten while the hub was asked": {
			newLog().observed(1, "true").event("device.forgotten", 1, 0, `{"name":""}`).
				read(t, 1, device(1, "true", 0)),
			`certain=true`,
		},
		"a device that the hub no longer has": {
			newLog().observed(1, "true").read(t, 1),
			`certain=true`,
		},
		"a device that was added while the hub was asked": {
			newLog().skipped().event("device.added", 1, 0, `{"name":"new"}`).read(t, 1),
			`certain=true | 1 "new" available=true certain=false`,
		},
		"an updated device": {
			newLog().read(t, 0, device(1, "true", 0)).event("device.updated", 1, 0,
				`{"name":"other","removed_channels":[{"key":"switch","endpoint":0}]}`),
			`certain=true | 1 "other" available=true certain=true`,
		},
		"another epoch": {
			func() *log {
				l := newLog().read(t, 0, device(1, "true", 0)).observed(1, "true")
				l.epoch = second
				return l.event("hub.connected", 0, 0, `{}`)
			}(),
			`certain=false`,
		},
		"a read of a former epoch": {
			func() *log {
				l := newLog().observed(1, "true")
				l.epoch = second
				l.event("hub.connected", 0, 0, `{}`)
				l.epoch = epoch
				return l.read(t, 1, device(1, "true", 0))
			}(),
			`certain=false`,
		},
		// Regression: nothing of the hub was known until it had an event.
		"a read of a new epoch without events": {
			func() *log {
				l := newLog().event("hub.connected", 0, 0, `{}`).observed(2, "true")
				l.epoch = second
				return l.read(t, 2, device(1, "true", 0))
			}(),
			`certain=true | 1 "device 1" available=true certain=true switch=true synchronized read`,
		},
		"an event of an unknown type": {
			newLog().read(t, 0).event("credential.created", 1, 0, `{"slot":1,"label":"x"}`),
			`certain=true`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := show(tc.log.fold(t)); got != tc.want {
				t.Errorf("state after %d entries:\n got %s\nwant %s", len(tc.log.entries), got, tc.want)
			}
		})
	}
}

func TestUnreadableEventsPutTheStateInDoubt(t *testing.T) {
	t.Parallel()
	for _, event := range []string{
		`{"type":"channel.observed","device_id":1,"time":"2026-01-01T00:00:00Z","data":{"endpoint":0,"value":1}}`,
		`{"type":"channel.observed","device_id":1,"time":"2026-01-01T00:00:00Z","data":{"key":"x"}}`,
		`{"type":"channel.observed","device_id":1,"time":"noon","data":{"key":"x","value":1}}`,
		`{"type":"device.updated","device_id":1,"time":"2026-01-01T00:00:00Z","data":{"removed_channels":[1]}}`,
	} {
		h := newLog().read(t, 0, device(1, "true", 0)).fold(t)
		err := h.Fold(devicestate.Entry{Seq: 2, Time: start, EpochID: epoch, Event: []byte(event)})
		if err == nil || h.Certain() || h.Seq != 2 {
			t.Errorf("Fold(%s) = %v, certain %t, at %d; want an error, false, 2",
				event, err, h.Certain(), h.Seq)
		}
	}
}

func TestLose(t *testing.T) {
	t.Parallel()
	l := newLog().read(t, 0, device(1, "true", 0)).skipped().read(t, 2, device(1, "true", 0))
	h := foldAll(t, l.entries[:1])
	h.Lose(2)
	if h.Certain() || h.Seq != 2 {
		t.Errorf("Lose(2): certain %t, at %d; want false, 2", h.Certain(), h.Seq)
	}
	if err := h.Fold(l.entries[2]); err != nil || !h.Certain() {
		t.Errorf("a read after Lose(2): %v, certain %t; want true", err, h.Certain())
	}
}

func TestDevicesAreBounded(t *testing.T) {
	t.Parallel()
	l := newLog().read(t, 0)
	for id := range int64(devicestate.MaxDevices + 1) {
		l.observed(id, "true")
	}
	h := l.fold(t)
	if len(h.Devices) != devicestate.MaxDevices || h.Certain() {
		t.Errorf("after events of %d devices: %d devices, certain %t; want %d, false",
			devicestate.MaxDevices+1, len(h.Devices), h.Certain(), devicestate.MaxDevices)
	}
}

// A hub that reported ever new channels, each of which is legal, filled memory and database. Its
// state keeps as many as a large building has, and takes new ones once some are removed.
func TestChannelsOfAHubAreBounded(t *testing.T) {
	t.Parallel()
	l := newLog().read(t, 0)
	report := func(device, endpoint int) {
		data := fmt.Sprintf(`{"key":"level","endpoint":%d,"value":1}`, endpoint)
		l.event("channel.observed", int64(device), 0, data)
	}
	const devices = 100
	for endpoint := range devicestate.MaxHubChannels/devices + 5 {
		for device := range devices {
			report(device, endpoint)
		}
	}
	count := func(h *devicestate.Hub) (n int) {
		for _, d := range h.Devices {
			n += len(d.Channels)
		}
		return n
	}
	h := l.fold(t)
	if n := count(h); n != devicestate.MaxHubChannels || h.Device(1).Certain() {
		t.Errorf("got %d channels, device certain %t, want %d, false", n, h.Device(1).Certain(),
			devicestate.MaxHubChannels)
	}
	l.event("device.forgotten", 1, 0, `{"name":"x"}`)
	report(devices, 0)
	if h = l.fold(t); h.Device(devices) == nil || len(h.Device(devices).Channels) != 1 {
		t.Error("after a device was forgotten, a new channel is not kept")
	}
}

// numbered adds an event with a number of the hub's own.
func (l *log) numbered(number uint64, typ string, device int64, data string) *log {
	l.event(typ, device, -time.Hour, data) // the hub's clock is wrong
	l.entries[len(l.entries)-1].Number = number
	return l
}

// answered adds a complete read that was asked for when the log ended with after, with the number
// of the last event that the hub took into account.
func (l *log) answered(
	t testing.TB, after, last uint64, devices ...devicestate.ReadDevice,
) *log {
	t.Helper()
	r := devicestate.Read{
		After: after, EpochID: l.epoch, Devices: devices, Complete: true, LastEvent: &last,
	}
	for i := range devices {
		devices[i].LastEvent = &last
		r.All = append(r.All, devices[i].ID)
	}
	records, err := devicestate.MarshalRead(r)
	streamstest.Must(t, err)
	l.state(records)
	return l
}

// sensor returns device 1 with a smoke channel, as its hub answers it.
func sensor(value string) devicestate.ReadDevice {
	d := device(1, value, 0)
	d.Channels[0].Key, d.Channels[0].Kind = "smoke", "smoke"
	return d
}
