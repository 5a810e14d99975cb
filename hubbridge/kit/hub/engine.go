package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
)

// Engine is a hub without network and goroutines: its log, its memory of command ids and its flow
// control. A session drives it:
//
//   - connect and disconnect begin and end a connection. While there is one, nextMessage returns
//     the next message to publish or when to ask again, handleAck handles an ack, and HandleRequest
//     runs a request.
//   - wake is called with the lock held whenever nextMessage may have something to do before the time
//     that it returned.
//
// The lock is never held while anything is sent or a Handler runs. All methods are safe for
// concurrent use.
type Engine struct {
	cfg  Config
	wake func()

	changes broadcast

	mu           sync.Mutex
	journal      *journal
	commands     map[string]rememberedAnswer // by command id
	running      map[string]chan struct{}    // closed at the end of the command with the id
	nextSweep    time.Time                   // of commands
	clockOffset  time.Duration
	clockUnknown bool
	window       window
	connection   uint64 // changes with each connect and disconnect
	acked        uint64
	sent         uint64 // the highest number ever sent in the log
	counts       Status // what Status counts
}

// newEngine opens the journal in cfg.Dir, or begins a new one. wake must not block and must not
// call the engine.
func newEngine(cfg Config, id domain.HubID, wake func()) (*Engine, error) {
	j, err := openJournal(cfg.Dir, cfg.Capacity, newLogID)
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", id, err)
	}
	e := &Engine{
		cfg: cfg, wake: wake, journal: j,
		commands: map[string]rememberedAnswer{}, running: map[string]chan struct{}{},
		window: window{limit: protocol.MaxUnacknowledged},
	}
	if err := e.loadCommands(); err != nil {
		return nil, errors.Join(fmt.Errorf("hub %s: %w", id, err), j.close())
	}
	return e, nil
}

// newLogID returns a random id for a new hub log.
func newLogID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return hex.EncodeToString(b[:])
}

// close closes the journal.
func (e *Engine) close() error { return e.journal.close() }

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
	last, err = e.journal.commit(encoded, change.Set, change.Delete)
	if err != nil {
		return 0, err
	}
	e.notify()
	return last, nil
}

// Entries returns the entries whose names begin with prefix.
func (e *Engine) Entries(prefix string) map[string]json.RawMessage {
	entries := e.journal.entriesWith(prefix)
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
	if err := e.journal.reset(newLogID(), entries); err != nil {
		return err
	}
	e.commands, e.acked, e.sent = map[string]rememberedAnswer{}, 0, 0
	if e.window.connected {
		e.window.connect() // the cloud does not know the new log: hello comes first
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
	e.window.limit = limit
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
	from, to, err = e.journal.skip(n)
	e.notify()
	return from, to, err
}

// setEnrolled notes that the hub has a certificate.
func (e *Engine) setEnrolled() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts.Enrolled = true
}

// notify wakes the owner of the engine and all callers of wait.
func (e *Engine) notify() {
	e.wake()
	e.changes.send()
}

// wait returns nil once reached returns true, and the cause of ctx if ctx ends first. It calls
// reached, without the lock held, at the start and after each change.
func (e *Engine) wait(ctx context.Context, reached func() bool) error {
	return e.changes.wait(ctx, reached)
}

// sync returns once the journal is safe from a power cut. It must be called between nextMessage and
// the publish: otherwise a number that the cloud has seen could be used again after a power cut.
func (e *Engine) sync() error { return e.journal.sync() }

// Status is a hub's position in its log.
type Status struct {
	// Connected is true while there is a connection on which the cloud has acknowledged the hello.
	Connected bool
	// Log is the id of the hub's log.
	Log string
	// Oldest is the lowest number that the hub still keeps, Newest the highest number that it has
	// used, Acked the highest number that the cloud has acknowledged since the start or a reset.
	Oldest, Newest, Acked uint64
	// Enrolled is true once the hub has a certificate.
	Enrolled bool
	// Resent counts the events that were sent again, Requests the requests that were answered, and
	// Disconnections the connections that have ended, all since the hub was made.
	Resent, Requests, Disconnections uint64
}

// Status returns the present status.
func (e *Engine) status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.counts
	s.Connected, s.Log, s.Acked = e.window.helloAcked(), e.journal.currentLog(), e.acked
	s.Oldest, s.Newest = e.journal.bounds()
	return s
}
