package statelog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/projections/devicestate"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const hubA = domain.HubID("hub-aaaa-aaaa-aaaa")

// fixture is a hub with devices of its own, its log over a real broker, and a Keeper.
type fixture struct {
	testing.TB
	conns    *streams.Conns
	logs     *feed.Logs
	journals *journal.Journal
	cfg      Config

	mu     sync.Mutex
	epoch  domain.Epoch
	online bool
	// inDoubt is for Config.InDoubt.
	inDoubt bool
	last    uint64
	// values are the values of the devices' only channels, observed the times of their reports.
	values   map[int64]string
	observed map[int64]time.Time
	// answer, if not nil, is called before each answer and may replace it by an error.
	answer func(ctx context.Context, device int64) error
	lists  int
	// busy counts the requests under way, and most the most there were.
	busy, most int
	faults     []string
}

func start(t testing.TB, retention time.Duration) *fixture {
	conns := streamstest.Start(t)
	f := &fixture{
		TB: t, conns: conns, epoch: domain.Epoch{ID: domain.NewEpochID(1)}, online: true,
		values: map[int64]string{}, observed: map[int64]time.Time{},
	}
	f.journals, _ = viewstest.Open(t, conns, retention)
	logs, err := feed.New(conns, feed.Config{
		Journal: f.journals, Retention: retention, Logger: slog.New(slog.DiscardHandler),
		Epoch: func(id domain.HubID) (domain.Epoch, bool) {
			access, ok := f.Hub(id)
			return access.Epoch, ok
		},
	})
	streamstest.Must(t, err)
	f.logs = logs
	t.Cleanup(logs.Close)
	streamstest.Run(t, "hub logs", logs.Run)
	f.cfg = Config{
		Logs: logs, Journals: f.journals, Devices: f, Hubs: f,
		Serves: func(domain.HubID) bool { return true },
		Online: func(domain.HubID) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.online
		},
		ReportFault: func(_ domain.HubID, detail string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.faults = append(f.faults, detail)
		},
		Retention: retention, Delay: time.Millisecond, MinInterval: time.Millisecond,
		Pause: time.Microsecond, Settle: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
	return f
}

// keep runs a Keeper until stop is called or the test ends.
func (f *fixture) keep() (stop func()) {
	f.Helper()
	k, err := New(f.cfg)
	streamstest.Must(f, err)
	return streamstest.Run(f, "keeper", k.Run)
}

// Hubs and Hub make the fixture the Hubs of its Keeper.
func (f *fixture) Hubs() []domain.HubID { return []domain.HubID{hubA} }

func (f *fixture) Hub(id domain.HubID) (domain.HubAccess, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return domain.HubAccess{OrgID: "org", Epoch: f.epoch}, id == hubA
}

// Refresh does nothing: Hub returns what the test has set.
func (f *fixture) Refresh(context.Context) error { return nil }

// List and Get make the fixture the Devices of its Keeper.
func (f *fixture) List(ctx context.Context, _ domain.HubID) ([]domain.Device, error) {
	defer f.begin()()
	if err := f.fail(ctx, 0); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	var all []domain.Device
	for id := range f.values {
		all = append(all, domain.Device{ID: id})
	}
	return all, nil
}

func (f *fixture) Get(ctx context.Context, _ domain.HubID, id int64) (domain.Device, error) {
	defer f.begin()()
	f.mu.Lock()
	device, ok := f.device(id)
	f.mu.Unlock()
	if err := f.fail(ctx, id); err != nil {
		return domain.Device{}, err
	}
	if !ok {
		return device, domain.Errorf(domain.CodeNotFound, "no device %d", id)
	}
	return device, nil
}

// begin counts a request until end is called.
func (f *fixture) begin() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy++
	f.most = max(f.most, f.busy)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy--
	}
}

func (f *fixture) fail(ctx context.Context, device int64) error {
	f.mu.Lock()
	answer := f.answer
	f.mu.Unlock()
	if answer == nil {
		return nil
	}
	return answer(ctx, device)
}

// device returns a device as the hub has it. f.mu must be held.
func (f *fixture) device(id int64) (domain.Device, bool) {
	value, ok := f.values[id]
	channel := domain.Channel{
		Key: "switch", Kind: "switch", Readable: true, Writable: true, Available: true,
		Capabilities: json.RawMessage(`{}`), Value: json.RawMessage(value),
		Status: domain.ChannelSynchronized,
	}
	if at := f.observed[id]; !at.IsZero() {
		text := domain.FormatTime(at)
		channel.ObservedAt = &text
	}
	return domain.Device{
		ID: id, Name: fmt.Sprint("device ", id), Manufacturer: "m", Model: "x",
		Channels: []domain.Channel{channel},
	}, ok
}

// set changes a device without an event.
func (f *fixture) set(id int64, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[id], f.observed[id] = value, time.Now()
}

// report changes a device and stores the event.
func (f *fixture) report(id int64, value string) {
	f.Helper()
	f.set(id, value)
	f.event(journal.KindHubEvent, "channel.observed", &id, fmt.Sprintf(
		`{"key":"switch","endpoint":0,"value":%s}`, value,
	))
}

func (f *fixture) connected() {
	f.Helper()
	f.event(journal.KindCloudEvent, domain.EventHubConnected, nil, `{}`)
}

// event stores an event of the hub or of the cloud.
func (f *fixture) event(kind journal.Kind, typ string, device *int64, data string) {
	f.Helper()
	f.mu.Lock()
	at := f.epoch.ID
	f.mu.Unlock()
	payload, err := json.Marshal(domain.HubEvent{
		Type: typ, HubID: hubA, DeviceID: device, Time: domain.FormatTime(time.Now()),
		Data: json.RawMessage(data),
	})
	streamstest.Must(f, err)
	records := []journal.Record{{Kind: kind, EpochID: at, OrgID: "org", Payload: payload}}
	last, err := f.logs.Append(f.Context(), hubA, f.last, records)
	if err != nil {
		last, err = f.logs.Append(f.Context(), hubA, 0, records) // all events have expired
	}
	streamstest.Must(f, err)
	f.last = last
}

// now returns the state at this moment.
func (f *fixture) now() *devicestate.Hub {
	f.Helper()
	last, err := f.logs.LastSequence(f.Context(), hubA)
	streamstest.Must(f, err)
	found, err := fold(f.Context(), f.logs, hubA, last, time.Time{})
	streamstest.Must(f, err)
	return found.Hub
}

// matches reports whether the state is certain and has exactly the hub's devices and values.
func (f *fixture) matches(h *devicestate.Hub) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inDoubt(h) || len(h.Devices) != len(f.values) {
		return false
	}
	return !slices.ContainsFunc(h.Devices, func(d *devicestate.Device) bool {
		c := d.Channel("switch", 0)
		return c == nil || string(c.Value) != f.values[d.ID]
	})
}

// await waits until the state is what the hub has.
func (f *fixture) await(what string) {
	f.Helper()
	streamstest.Eventually(f, what, func() bool { return f.matches(f.now()) })
}

// states returns the number of reads and of snapshots in the log, counting each part.
func (f *fixture) states() (reads, snapshots int) {
	f.Helper()
	err := f.logs.States(f.Context(), hubA, func(e feed.Entry) {
		if devicestate.IsSnapshot(e.Payload) {
			snapshots++
		} else {
			reads++
		}
	})
	streamstest.Must(f, err)
	return reads, snapshots
}
