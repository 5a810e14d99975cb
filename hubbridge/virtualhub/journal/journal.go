package journal

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
)

// DefaultCapacity is how many events are held when Config does not say.
const DefaultCapacity = 10_000

var (
	// ErrCorrupt is returned by Open for a file that is damaged before its end.
	ErrCorrupt = errors.New("journal is damaged")
	// ErrInUse is returned by Open for a directory that another journal is using.
	ErrInUse = errors.New("journal is in use")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("journal is closed")
)

// Config says where and how much.
type Config struct {
	// Dir is the directory of the file; it is created. Empty: in memory.
	Dir string
	// Capacity is the most events held. 0: DefaultCapacity.
	Capacity int
	// NewLogID makes the identity of a log that begins. Needed.
	NewLogID func() string
}

// Journal holds a hub's events and entries.
type Journal struct {
	capacity int

	mu      sync.Mutex
	log     string
	newest  uint64
	events  ring // the numbers up to newest
	entries map[string]json.RawMessage
	disk    *disk // nil: in memory
	closed  bool
}

// Change is what Commit does, as one.
type Change struct {
	// Events are JSON objects without a number; they get the next ones.
	Events []json.RawMessage
	// Set and Delete change entries. A nil map and slice leave them.
	Set    map[string]json.RawMessage
	Delete []string
}

// Open opens the journal of a directory, or begins one.
func Open(cfg Config) (*Journal, error) {
	if cfg.Capacity <= 0 {
		cfg.Capacity = DefaultCapacity
	}
	j := &Journal{capacity: cfg.Capacity, entries: map[string]json.RawMessage{}}
	if cfg.Dir == "" {
		j.log = cfg.NewLogID()
		return j, nil
	}
	d, err := openDisk(cfg.Dir, j.apply)
	if err != nil {
		return nil, err
	}
	j.disk = d
	if j.log == "" {
		j.log = cfg.NewLogID()
		if err := d.rewrite(j.snapshot()); err != nil {
			return nil, errors.Join(err, d.close())
		}
	}
	return j, nil
}

// Log is the identity of the log.
func (j *Journal) LogID() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log
}

// Bounds are the lowest number held and the highest ever given; oldest is newest+1 when none is
// held.
func (j *Journal) Bounds() (oldest, newest uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.oldest(), j.newest
}

func (j *Journal) oldest() uint64 { return j.newest + 1 - uint64(j.events.len()) }

// Commit keeps a change, and returns the number of its last event, or the highest number yet when
// it has none. An error (of the disk, or ErrClosed) leaves everything as it was.
func (j *Journal) Commit(c Change) (last uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Set: c.Set, Delete: c.Delete}
	if len(c.Events) > 0 {
		r.First = j.newest + 1
		r.Events = make([]json.RawMessage, len(c.Events))
		for i, event := range c.Events {
			r.Events[i] = number(event, r.First+uint64(i))
		}
	}
	if err := j.keep(r); err != nil {
		return 0, err
	}
	return j.newest, nil
}

// Ack lets go of the events up to through. Numbers beyond newest are taken as given: whoever
// acknowledges them has seen them from this log, whatever happened to its file, and they must not
// be given to other events.
//
// It is written with the next change: events that come back after a crash are sent again, and
// recognized by their numbers.
func (j *Journal) Ack(through uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.release(through)
}

// Skip gives out n numbers without events, and drops the events held before them. It returns the
// bounds of what is lost.
func (j *Journal) Skip(n uint64) (from, to uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, to = j.oldest(), j.newest+n
	return from, to, j.keep(record{Through: to})
}

// Reset begins a new log with the given entries and nothing else.
func (j *Journal) Reset(log string, entries map[string]json.RawMessage) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	if j.disk != nil {
		if err := j.disk.rewrite([]record{{Log: log, Set: entries}}); err != nil {
			return err
		}
	}
	j.log, j.newest, j.events, j.entries = log, 0, ring{}, maps.Clone(entries)
	if j.entries == nil {
		j.entries = map[string]json.RawMessage{}
	}
	return nil
}

// Events are events from the given number on, with their numbers in them: at most limit of them and
// maxBytes together, but one in any case. None are returned when that number is not held.
func (j *Journal) Events(from uint64, limit, maxBytes int) []json.RawMessage {
	j.mu.Lock()
	defer j.mu.Unlock()
	if from < j.oldest() || from > j.newest {
		return nil
	}
	held := j.events.from(int(from - j.oldest()))
	n, size := 0, 0
	for n < len(held) && n < limit {
		if size += len(held[n]) + 1; n > 0 && size > maxBytes {
			break
		}
		n++
	}
	return append([]json.RawMessage(nil), held[:n]...)
}

// Entries are the entries whose names begin with prefix.
func (j *Journal) Entries(prefix string) map[string]json.RawMessage {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := map[string]json.RawMessage{}
	for name, value := range j.entries {
		if strings.HasPrefix(name, prefix) {
			found[name] = value
		}
	}
	return found
}

// Sync returns once everything committed is safe from a power cut.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	if j.disk == nil {
		return nil
	}
	return j.disk.sync()
}

// Close ends the journal. A second Close does nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if j.disk == nil {
		return nil
	}
	return errors.Join(j.disk.append(record{Through: j.oldest() - 1}), j.disk.close())
}

// keep writes r and applies it.
func (j *Journal) keep(r record) error {
	if j.closed {
		return ErrClosed
	}
	if j.disk != nil {
		r.Through = max(r.Through, j.oldest()-1)
		if err := j.disk.append(r); err != nil {
			return err
		}
	}
	j.apply(r)
	if j.disk != nil && j.disk.mostlyHistory() {
		// The change is kept whether this works or not; it is tried again with the next one.
		_ = j.disk.rewrite(j.snapshot())
	}
	return nil
}

// apply folds a record into what is held. It is the same for records that are made and for records
// that are read back.
func (j *Journal) apply(r record) {
	if r.Log != "" {
		j.log = r.Log
	}
	if len(r.Events) > 0 {
		if r.First != j.newest+1 { // numbers were acknowledged ahead of what the file has: see Ack
			j.release(r.First - 1)
		}
		j.events.push(r.Events)
		j.newest += uint64(len(r.Events))
		j.events.drop(j.events.len() - j.capacity)
	}
	maps.Copy(j.entries, r.Set)
	for _, name := range r.Delete {
		delete(j.entries, name)
	}
	j.release(r.Through)
}

func (j *Journal) release(through uint64) {
	if through >= j.newest {
		j.newest, j.events = through, ring{}
		return
	}
	if oldest := j.oldest(); through >= oldest {
		j.events.drop(int(through - oldest + 1))
	}
}

// snapshot is everything as records of moderate size.
func (j *Journal) snapshot() []record {
	const perRecord = 500
	records := []record{{Log: j.log, Set: j.entries, Through: j.oldest() - 1}}
	held, first := j.events.from(0), j.oldest()
	for len(held) > 0 {
		n := min(perRecord, len(held))
		records = append(records, record{First: first, Events: held[:n]})
		held, first = held[n:], first+uint64(n)
	}
	return records
}

// number puts a number into an event.
func number(event json.RawMessage, seq uint64) json.RawMessage {
	out := make([]byte, 0, len(event)+28)
	out = append(out, `{"seq":`...)
	out = strconv.AppendUint(out, seq, 10)
	if rest := event[1:]; len(rest) > 1 {
		out = append(out, ',')
		out = append(out, rest...)
	} else {
		out = append(out, '}')
	}
	return out
}
