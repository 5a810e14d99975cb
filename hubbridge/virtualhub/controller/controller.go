package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/internal/notify"
	"hubcloud/hubbridge/virtualhub/journal"
	"hubcloud/hubbridge/virtualhub/sendwindow"
)

// Names of the journal's entries.
const (
	entryDevice     = "device/"  // + device id: a device.Snapshot
	entryCommand    = "command/" // + command id: a rememberedAnswer
	entryNextDevice = "next_device"
)

// Controller is the logic of one hub. Make it with New and end it with Close.
type Controller struct {
	cfg  Config
	wake func()

	changes notify.Broadcast

	mu         sync.Mutex
	journal    *journal.Journal
	devices    []*device.Device // by ascending id
	nextDevice int64
	commands   map[string]rememberedAnswer // by command id
	nextSweep  time.Time                   // of commands
	pairing    window
	removal    window
	lastJoined int64 // id of the device that joined last
	joins      int   // devices that have joined; selects the next of cfg.Joinable
	faults     Faults
	booted     time.Time
	window     sendwindow.Window
	connection uint64 // changes with each connect and disconnect
	acked      uint64
}

// New opens the journal in cfg.Dir, or starts a new hub, and returns its controller. wake must not
// block and must not call the controller; see the package documentation.
func New(cfg Config, wake func()) (*Controller, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	j, err := journal.Open(journal.Config{Dir: cfg.Dir, Capacity: cfg.Capacity, NewLogID: newLogID})
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", cfg.HubID, err)
	}
	c := &Controller{
		cfg: cfg, wake: wake, journal: j, faults: cfg.Faults.clone(), booted: time.Now(),
		window: sendwindow.Window{Limit: protocol.MaxUnacknowledged},
	}
	if err := c.load(time.Now()); err != nil {
		return nil, errors.Join(fmt.Errorf("hub %s: %w", cfg.HubID, err), j.Close())
	}
	c.applyFaults()
	return c, nil
}

// newLogID returns a random id for a new hub log.
func newLogID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// Close closes the journal.
func (c *Controller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.journal.Close()
}

// load restores the hub from the journal, or makes a new one if the journal is empty.
func (c *Controller) load(now time.Time) error {
	raw, known := c.journal.Entries(entryNextDevice)[entryNextDevice]
	if !known {
		set, err := c.makeNew(now)
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
		d, err := device.Restore(s, seed(c.cfg.HubID))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.devices = append(c.devices, d)
	}
	slices.SortFunc(c.devices, func(a, b *device.Device) int { return cmp.Compare(a.ID, b.ID) })
	c.commands = map[string]rememberedAnswer{}
	for name, raw := range c.journal.Entries(entryCommand) {
		var a rememberedAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		c.commands[strings.TrimPrefix(name, entryCommand)] = a
	}
	return nil
}

// makeNew sets the state of a new hub and returns its journal entries.
func (c *Controller) makeNew(now time.Time) (map[string]json.RawMessage, error) {
	c.devices, c.commands, c.nextDevice = nil, map[string]rememberedAnswer{}, 1
	c.pairing, c.removal, c.lastJoined, c.joins = window{}, window{}, 0, 0
	for i, spec := range c.cfg.Devices {
		d, err := device.New(c.nextDevice, spec, seed(c.cfg.HubID), now)
		if err != nil {
			return nil, fmt.Errorf("device %d: %w", i+1, err)
		}
		c.devices = append(c.devices, d)
		c.nextDevice++
	}
	return c.entries(c.devices...), nil
}

// entries returns the journal entries of the given devices. It returns none without a directory:
// then no restart reads them.
func (c *Controller) entries(devices ...*device.Device) map[string]json.RawMessage {
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

// Advance moves devices and windows on to now. It returns when to call Advance next; zero means
// not before the next wake.
func (c *Controller) Advance(now time.Time) (due time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	var events []json.RawMessage
	var changed []*device.Device
	s := device.Surroundings{Radio: !c.faults.RadioDown, Quiet: c.cfg.Quiet, GiveUp: c.cfg.GiveUp}
	for _, d := range c.devices {
		observations, did := d.Advance(now, s)
		for _, o := range observations {
			events = append(events, c.event(EventObserved, d.ID, now, o))
		}
		if did {
			changed = append(changed, d)
		}
		earlier(d.Due(s))
	}
	expired := c.forgetOldCommands(now)
	if len(changed) > 0 || len(expired) > 0 {
		c.commit(journal.Change{Events: events, Set: c.entries(changed...), Delete: expired})
	}
	earlier(c.nextSweep)
	earlier(c.advanceWindows(now))
	return due
}

// commit stores a change that has already happened. If the journal fails, the change's events are
// lost and the failure is logged.
func (c *Controller) commit(change journal.Change) {
	if _, err := c.journal.Commit(change); err != nil {
		c.cfg.Logger.Error("journal write failed", "error", err)
		return
	}
	c.notify()
}

// notify wakes the owner of the controller and all callers of Wait.
func (c *Controller) notify() {
	c.wake()
	c.changes.Send()
}

// Wait returns nil once reached returns true, and the cause of ctx if ctx ends first. It calls
// reached, without the lock held, at the start and after each change.
func (c *Controller) Wait(ctx context.Context, reached func() bool) error {
	return c.changes.Wait(ctx, reached)
}

// Sync returns once the journal is safe from a power cut. It must be called between NextMessage and
// the publish: otherwise a number that the cloud has seen could be used again after a power cut.
func (c *Controller) Sync() error { return c.journal.Sync() }

// Restart simulates a power cycle: windows close and the boot time is now. The caller ends the
// connection.
func (c *Controller) Restart(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pairing, c.removal, c.booted = window{}, window{}, now
	c.notify()
}

// Reset resets the hub to factory state: a new log, the configured devices, no command ids.
func (c *Controller) Reset(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	set, err := c.makeNew(now)
	if err != nil {
		return err
	}
	if err := c.journal.Reset(newLogID(), set); err != nil {
		return err
	}
	c.acked = 0
	c.applyFaults()
	if c.window.Connected() {
		c.window.Connect() // the cloud does not know the new log: hello comes first
	}
	c.notify()
	return nil
}

// Status is a hub's position in its log.
type Status struct {
	// Connected is true while there is a connection on which the cloud has acknowledged the hello.
	Connected bool
	// Log is the id of the hub's log.
	Log string
	// Oldest is the lowest number that the hub still keeps, Newest the highest number that it has
	// used, Acked the highest number that the cloud has acknowledged since New or Reset.
	Oldest, Newest, Acked uint64
}

// Status returns the present status.
func (c *Controller) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Connected: c.window.HelloAcked(), Log: c.journal.LogID(), Acked: c.acked}
	s.Oldest, s.Newest = c.journal.Bounds()
	return s
}

// mustJSON encodes values of this package's own types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("virtualhub: encode %T: %v", v, err))
	}
	return raw
}
