package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/journal"
	"hubcloud/hubbridge/virtualhub/sendwindow"
)

// Names of the journal's entries.
const (
	entryDevice     = "device/"  // + id: a device.Snapshot
	entryCommand    = "command/" // + command id: an answered
	entryNextDevice = "next_device"
)

// controller is a hub's mind: devices, windows, command ids, the event log, and what to send next.
// It has no goroutine and no connection; whoever drives it calls advance when it asks for it,
// outgoing when there is a connection, and is told by wake when one of them has something to do
// earlier.
type controller struct {
	cfg  Config
	id   domain.HubID
	log  *slog.Logger
	wake func() // must not block

	changes broadcast // for those who wait for the hub to get somewhere

	mu         sync.Mutex
	journal    *journal.Journal
	devices    []*device.Device // by id, rising
	nextDevice int64
	commands   map[string]answered
	nextSweep  time.Time
	pairing    window
	removal    window
	joined     int64 // the device that joined last
	unpacked   int   // how many of cfg.Joinable have joined
	faults     Faults
	booted     time.Time
	window     sendwindow.Window
	connection uint64 // counts connections and their ends
	acked      uint64
}

func newController(cfg Config, id domain.HubID) (*controller, error) {
	dir := cfg.Dir
	j, err := journal.Open(journal.Config{Dir: dir, Capacity: cfg.Capacity, NewLog: newLog})
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", id, err)
	}
	c := &controller{
		cfg: cfg, id: id, log: cfg.Log, wake: func() {}, journal: j,
		faults: cfg.Faults.clone(), booted: time.Now(),
		window: sendwindow.Window{Limit: protocol.MaxUnacknowledged},
	}
	if err := c.load(time.Now()); err != nil {
		return nil, errors.Join(fmt.Errorf("hub %s: %w", id, err), j.Close())
	}
	c.layFaults()
	return c, nil
}

// load takes what the journal holds, or what a new hub has.
func (c *controller) load(now time.Time) error {
	raw, known := c.journal.Entries(entryNextDevice)[entryNextDevice]
	if !known {
		set, err := c.fresh(now)
		if err != nil {
			return err
		}
		_, err = c.journal.Commit(journal.Change{Set: set})
		return err
	}
	if err := json.Unmarshal(raw, &c.nextDevice); err != nil {
		return fmt.Errorf("read the next device id: %w", err)
	}
	for name, raw := range c.journal.Entries(entryDevice) {
		var s device.Snapshot
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		d, err := device.Restore(s, seed(c.id))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.devices = append(c.devices, d)
	}
	slices.SortFunc(c.devices, func(a, b *device.Device) int { return int(a.ID - b.ID) })
	c.commands = map[string]answered{}
	for name, raw := range c.journal.Entries(entryCommand) {
		var a answered
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.commands[strings.TrimPrefix(name, entryCommand)] = a
	}
	return nil
}

// fresh makes the hub one that is new, and gives the entries of it.
func (c *controller) fresh(now time.Time) (map[string]json.RawMessage, error) {
	c.devices, c.commands, c.nextDevice = nil, map[string]answered{}, 1
	c.pairing, c.removal, c.joined, c.unpacked = window{}, window{}, 0, 0
	for i, spec := range c.cfg.Devices {
		d, err := device.New(c.nextDevice, spec, seed(c.id), now)
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", i+1, err)
		}
		c.devices = append(c.devices, d)
		c.nextDevice++
	}
	return c.entries(c.devices...), nil
}

// entries are the journal's entries of the given devices. In memory there are none: the controller
// itself is what outlives a restart.
func (c *controller) entries(devices ...*device.Device) map[string]json.RawMessage {
	if c.cfg.Dir == "" {
		return nil
	}
	set := map[string]json.RawMessage{entryNextDevice: mustJSON(c.nextDevice)}
	for _, d := range devices {
		set[deviceEntry(d.ID)] = mustJSON(d.Snapshot())
	}
	return set
}

func deviceEntry(id int64) string { return entryDevice + strconv.FormatInt(id, 10) }

func (c *controller) device(id int64) *device.Device {
	for _, d := range c.devices {
		if d.ID == id {
			return d
		}
	}
	return nil
}

func (c *controller) surroundings() device.Surroundings {
	return device.Surroundings{Radio: !c.faults.RadioDown, Quiet: c.cfg.Quiet, GiveUp: c.cfg.GiveUp}
}

// advance carries devices and windows on to now, and says when to call it next; zero: when
// something happens.
func (c *controller) advance(now time.Time) (due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	var events []json.RawMessage
	var changed []*device.Device
	s := c.surroundings()
	for _, d := range c.devices {
		told, did := d.Advance(now, s)
		for _, o := range told {
			events = append(events, c.event(eventObserved, d.ID, now, o))
		}
		if did {
			changed = append(changed, d)
		}
		earlier(d.Due(s))
	}
	expired := c.sweep(now)
	if len(changed) > 0 || len(expired) > 0 {
		c.commit(journal.Change{Events: events, Set: c.entries(changed...), Delete: expired})
	}
	earlier(c.nextSweep)
	earlier(c.advanceWindows(now))
	return due
}

// commit keeps a change that cannot be refused any more. Events that the disk does not take are
// lost, and logged.
func (c *controller) commit(change journal.Change) {
	if _, err := c.journal.Commit(change); err != nil {
		c.log.Error("the hub cannot keep what happened", "error", err)
		return
	}
	c.stir()
}

// stir tells those who drive the hub and those who wait for it that something has changed.
func (c *controller) stir() {
	c.wake()
	c.changes.send()
}

func (c *controller) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.journal.Close()
}

// mustJSON encodes what the package itself made: it cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("virtualhub: %T does not encode: %v", v, err))
	}
	return raw
}

// restart is what being switched off and on does to a hub beside its connection.
func (c *controller) restart(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pairing, c.removal, c.booted = window{}, window{}, now
	c.stir()
}
