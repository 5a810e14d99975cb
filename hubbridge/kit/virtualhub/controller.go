package virtualhub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/protocol"
)

// Names of the engine's entries.
const (
	entryDevice     = "device/" // + device id: a deviceSnapshot
	entryNextDevice = "next_device"
)

// controller is the simulated part of one hub: its devices, windows and faults. It is a
// hub.Handler, and has no goroutine and no network: its owner calls advance, and wake is called,
// with the lock held, whenever advance may have something to do before the time that it returned.
//
// A change of a device and its events are stored by the engine as one change, for a command
// together with its answer: all of them survive a restart, or none.
type controller struct {
	cfg    Config
	id     domain.HubID
	engine *hub.Engine
	wake   func()
	now    func() time.Time

	mu         sync.Mutex
	devices    []*device // by ascending id
	nextDevice int64
	pairing    window
	removal    window
	// smartStart is whether a device may join by itself after the window: its QR code was kept.
	smartStart bool
	interviews []interview
	lastJoined int64 // id of the device that joined last
	joins      int   // devices that have joined; selects the next of cfg.Joinable
	faults     Faults
	booted     time.Time
}

// newController restores the devices in the engine's entries, or makes the ones in cfg, and returns
// their controller. wake must not block and must not call the controller.
func newController(
	cfg Config, id domain.HubID, engine *hub.Engine, wake func(),
) (*controller, error) {
	c := &controller{
		cfg: cfg, id: id, engine: engine, wake: wake, now: time.Now, faults: cfg.Faults.clone(),
		booted: time.Now(),
	}
	if err := c.load(time.Now()); err != nil {
		return nil, fmt.Errorf("hub %s: %w", id, err)
	}
	c.applyFaults()
	return c, nil
}

// load restores the devices from the engine's entries, or makes new ones if there are none.
func (c *controller) load(now time.Time) error {
	raw, known := c.engine.Entries(entryNextDevice)[entryNextDevice]
	if !known {
		set, err := c.makeNew(now)
		if err != nil {
			return err
		}
		_, err = c.engine.Commit(now, hub.Change{Set: set})
		return err
	}
	if err := json.Unmarshal(raw, &c.nextDevice); err != nil {
		return fmt.Errorf("read the next device id: %w", err)
	}
	for name, raw := range c.engine.Entries(entryDevice) {
		var s deviceSnapshot
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		d, err := restoreDevice(s, seed(c.id))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.devices = append(c.devices, d)
	}
	slices.SortFunc(c.devices, func(a, b *device) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// makeNew sets the state of a new hub and returns its entries.
func (c *controller) makeNew(now time.Time) (map[string]json.RawMessage, error) {
	c.devices, c.nextDevice = nil, 1
	c.pairing, c.removal, c.lastJoined, c.joins = window{}, window{}, 0, 0
	c.smartStart, c.interviews = false, nil
	for i, spec := range c.cfg.Devices {
		d, err := newDevice(c.nextDevice, spec, seed(c.id), now)
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", i+1, err)
		}
		c.devices = append(c.devices, d)
		c.nextDevice++
	}
	return c.entries(c.devices...), nil
}

// entries returns the entries of the given devices. It returns none unless they are stored.
func (c *controller) entries(devices ...*device) map[string]json.RawMessage {
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

// advance moves devices and windows on to now. It returns when to call advance next; zero means
// not before the next wake.
func (c *controller) advance(now time.Time) (due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	var events []hub.Event
	var changed []*device
	s := surroundings{Radio: !c.faults.RadioDown, Quiet: c.cfg.Quiet, GiveUp: c.cfg.GiveUp}
	for _, d := range c.devices {
		observations, did := d.Advance(now, s)
		events = append(events, observed(d, observations)...)
		if did {
			changed = append(changed, d)
		}
		earlier(d.Due(s))
	}
	if len(changed) > 0 {
		c.commit(now, hub.Change{Events: events, Set: c.entries(changed...)})
	}
	earlier(c.advanceWindows(now))
	earlier(c.advanceInterviews(now))
	return due
}

// commit stores a change that has already happened. If the engine cannot store it, the change's
// events are lost and the failure is logged.
func (c *controller) commit(now time.Time, change hub.Change) {
	if _, err := c.engine.Commit(now, change); err != nil {
		c.cfg.Logger.Error("journal write failed", "error", err)
		return
	}
	c.wake()
}

// Restart simulates a power cycle: windows close and the boot time is now. The caller ends the
// connection.
func (c *controller) Restart(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pairing, c.removal, c.booted = window{}, window{}, now
	c.setClock()
	c.wake()
}

// Reset resets the hub to factory state: a new log, the configured devices, no command ids.
func (c *controller) Reset(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	set, err := c.makeNew(now)
	if err != nil {
		return err
	}
	if err := c.engine.Reset(set); err != nil {
		return err
	}
	c.applyFaults()
	c.wake()
	return nil
}

// mustJSON encodes values of this package's own types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("virtualhub: encode %T: %v", v, err))
	}
	return raw
}

// seed returns the seed of a hub's devices: they behave the same in every run, and differ from
// other hubs' devices.
func seed(id domain.HubID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum64()
}

// simulatedNetwork returns a network whose addresses are derived from the hub id.
func simulatedNetwork(id domain.HubID) *protocol.Network {
	n := seed(id)
	ip := fmt.Sprintf("10.%d.%d.%d", byte(n>>16), byte(n>>8), 2+byte(n)%250)
	mac := fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return &protocol.Network{Type: "ethernet", Interface: "eth0", IPAddress: &ip, MACAddress: &mac}
}
