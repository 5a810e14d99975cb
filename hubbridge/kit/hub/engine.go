package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub/journal"
	"hubcloud/hubbridge/kit/hub/notify"
	"hubcloud/hubbridge/kit/hub/sendwindow"
	"hubcloud/hubbridge/protocol"
)

// EngineConfig configures an Engine. ID is required.
type EngineConfig struct {
	// ID is the hub's id.
	ID domain.HubID
	// Dir keeps events, entries and command ids over a restart. Empty keeps them in memory, with a
	// new hub log per Engine.
	Dir string
	// Capacity is the most unacknowledged events that the hub keeps. Defaults to
	// journal.DefaultCapacity.
	Capacity int
	// Batch is the most events per message. Defaults to protocol.MaxMessageEvents, the most
	// allowed.
	Batch int
	// Firmware is the version in the hello. Defaults to "1.0.0".
	Firmware string
	// Network is the network in the hello. Defaults to the first interface that is up and has an
	// address.
	Network *protocol.Network
	// Logger receives one record per request, and failures. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy of cfg with the defaults for zero fields.
func (cfg EngineConfig) WithDefaults() EngineConfig {
	cfg.Capacity = cmp.Or(cfg.Capacity, journal.DefaultCapacity)
	cfg.Batch = cmp.Or(cfg.Batch, protocol.MaxMessageEvents)
	cfg.Firmware = cmp.Or(cfg.Firmware, "1.0.0")
	if cfg.Network == nil {
		cfg.Network = localNetwork()
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	return cfg
}

// Validate returns an error that names the first invalid field.
func (cfg EngineConfig) Validate() error {
	if cfg.ID == "" {
		return errors.New("hub id: must not be empty")
	}
	if cfg.Batch < 1 || cfg.Batch > protocol.MaxMessageEvents {
		return fmt.Errorf("batch: is %d, must be 1 to %d", cfg.Batch, protocol.MaxMessageEvents)
	}
	return nil
}

// Engine is a hub without network and goroutines. Its owner drives it:
//
//   - Connect and Disconnect begin and end a connection. While there is one, NextMessage returns
//     the next message to publish or when to ask again, HandleAck handles an ack, and HandleRequest
//     runs a request.
//   - wake, which is passed to NewEngine, is called with the lock held whenever NextMessage may
//     have something to do before the time that it returned.
//
// The lock is never held while anything is sent or a Handler runs. All methods are safe for
// concurrent use. Make an Engine with NewEngine and end it with Close.
type Engine struct {
	cfg  EngineConfig
	wake func()

	changes notify.Broadcast

	mu           sync.Mutex
	journal      *journal.Journal
	commands     map[string]rememberedAnswer // by command id
	running      map[string]chan struct{}    // closed at the end of the command with the id
	nextSweep    time.Time                   // of commands
	clockOffset  time.Duration
	clockUnknown bool
	window       sendwindow.Window
	connection   uint64 // changes with each connect and disconnect
	acked        uint64
}

// NewEngine opens the journal in cfg.Dir, or begins a new one. wake must not block and must not
// call the engine.
func NewEngine(cfg EngineConfig, wake func()) (*Engine, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	j, err := journal.Open(journal.Config{Dir: cfg.Dir, Capacity: cfg.Capacity, NewLogID: newLogID})
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", cfg.ID, err)
	}
	e := &Engine{
		cfg: cfg, wake: wake, journal: j,
		commands: map[string]rememberedAnswer{}, running: map[string]chan struct{}{},
		window: sendwindow.Window{Limit: protocol.MaxUnacknowledged},
	}
	if err := e.loadCommands(); err != nil {
		return nil, errors.Join(fmt.Errorf("hub %s: %w", cfg.ID, err), j.Close())
	}
	return e, nil
}

// newLogID returns a random id for a new hub log.
func newLogID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// Close closes the journal.
func (e *Engine) Close() error { return e.journal.Close() }

// Change is a change that is stored as a whole: events, and entries that keep the state of a hub's
// devices over a restart. Names of entries must not begin with "command/".
type Change struct {
	Events []Event
	// Set sets entries by name, and Delete deletes entries.
	Set    map[string]json.RawMessage
	Delete []string
}

// Commit stores a change, all or nothing, and sends its events until they are acknowledged. now is
// the time of the events. It returns the number of the last event, or the highest number used if
// the change has no event.
func (e *Engine) Commit(now time.Time, change Change) (last uint64, err error) {
	for name := range change.Set {
		if strings.HasPrefix(name, entryCommand) {
			return 0, fmt.Errorf("entry %s: names that begin with %s are reserved", name, entryCommand)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.commit(now, change)
}

// commit stores a change with the lock held.
func (e *Engine) commit(now time.Time, change Change) (last uint64, err error) {
	encoded := make([]json.RawMessage, len(change.Events))
	for i, event := range change.Events {
		if encoded[i], err = e.encode(now, event); err != nil {
			return 0, fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	last, err = e.journal.Commit(journal.Change{
		Events: encoded, Set: change.Set, Delete: change.Delete,
	})
	if err != nil {
		return 0, err
	}
	e.notify()
	return last, nil
}

// Entries returns the entries whose names begin with prefix.
func (e *Engine) Entries(prefix string) map[string]json.RawMessage {
	entries := e.journal.Entries(prefix)
	maps.DeleteFunc(entries, func(name string, _ json.RawMessage) bool {
		return strings.HasPrefix(name, entryCommand)
	})
	return entries
}

// Reset resets the hub to factory state: a new log, no command ids, and the given entries in place
// of all others.
func (e *Engine) Reset(entries map[string]json.RawMessage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.journal.Reset(newLogID(), entries); err != nil {
		return err
	}
	e.commands, e.acked = map[string]rememberedAnswer{}, 0
	if e.window.Connected() {
		e.window.Connect() // the cloud does not know the new log: hello comes first
	}
	e.notify()
	return nil
}

// SetClock sets the clock of the hub's events: the system's time plus offset. known is false while
// the hub does not know the time, for example after a boot without a network; the cloud then shows
// its events as not trusted.
func (e *Engine) SetClock(known bool, offset time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clockUnknown, e.clockOffset = !known, offset
}

// SetWindow sets how many events the hub sends without an ack. 0 is no limit. A limit above
// protocol.MaxUnacknowledged breaks the protocol, to test a cloud.
func (e *Engine) SetWindow(limit uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.window.Limit = limit
	e.notify()
}

// LoseEvents uses n numbers without events and drops every unacknowledged event before them, like a
// hub whose storage was damaged. It returns the first and last number that are lost.
func (e *Engine) LoseEvents(n uint64) (from, to uint64, err error) {
	if n == 0 {
		return 0, 0, errors.New("events to lose: must be at least 1")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	from, to, err = e.journal.Skip(n)
	e.notify()
	return from, to, err
}

// notify wakes the owner of the engine and all callers of Wait.
func (e *Engine) notify() {
	e.wake()
	e.changes.Send()
}

// Wait returns nil once reached returns true, and the cause of ctx if ctx ends first. It calls
// reached, without the lock held, at the start and after each change.
func (e *Engine) Wait(ctx context.Context, reached func() bool) error {
	return e.changes.Wait(ctx, reached)
}

// Sync returns once the journal is safe from a power cut. It must be called between NextMessage and
// the publish: otherwise a number that the cloud has seen could be used again after a power cut.
func (e *Engine) Sync() error { return e.journal.Sync() }

// Status is a hub's position in its log.
type Status struct {
	// Connected is true while there is a connection on which the cloud has acknowledged the hello.
	Connected bool
	// Log is the id of the hub's log.
	Log string
	// Oldest is the lowest number that the hub still keeps, Newest the highest number that it has
	// used, Acked the highest number that the cloud has acknowledged since the start or a reset.
	Oldest, Newest, Acked uint64
}

// Status returns the present status.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Connected: e.window.HelloAcked(), Log: e.journal.LogID(), Acked: e.acked}
	s.Oldest, s.Newest = e.journal.Bounds()
	return s
}
