package hub

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// defaultCapacity is the capacity of a journal.
const defaultCapacity = 10_000

var (
	// ErrCorrupt is returned by New if the file is damaged, other than by a crash.
	ErrCorrupt = errors.New("journal is damaged")
	// ErrInUse is returned by New if another journal uses the directory.
	ErrInUse = errors.New("journal is in use")
	// ErrClosed is returned by the methods of a closed journal.
	ErrClosed = errors.New("journal is closed")
)

// journal keeps what a hub needs over a restart: its numbered events until they are acknowledged,
// and a small table of entries (its devices and the commands that it has answered). A change of
// both is stored as a whole or not at all.
//
// On disk, the journal is one append-only file of records, each with its length and a CRC-32C of
// both. Without a directory it is in memory.
//
//   - A log has an id. Numbers rise by one and are used once per log, even after kill -9. After a
//     power cut too, if the caller calls sync before it lets another party see a number.
//   - openJournal removes a last record that a crash left incomplete: its commit had not returned,
//     or a power cut came before its sync. Any other damage, also of a length or of the last record,
//     is ErrCorrupt, because the numbers of the damaged records may have been used.
//   - The journal keeps the newest events, at most capacity. Acknowledged events are dropped. Events
//     that are dropped for lack of capacity show in bounds.
//   - Once most of the file is history, a new file replaces it.
//   - One journal at a time uses a directory (ErrInUse). A journal is safe for concurrent use.
type journal struct {
	capacity int

	mu      sync.Mutex
	logID   string
	newest  uint64            // the highest number used
	events  []json.RawMessage // the numbers up to newest
	entries map[string]json.RawMessage
	disk    *store // nil for a journal in memory
	closed  bool
}

// openJournal opens the journal in dir, or begins a new one. An empty dir keeps it in memory. It
// returns ErrInUse and ErrCorrupt.
func openJournal(dir string, capacity int, newLogID func() string) (*journal, error) {
	j := &journal{capacity: capacity, entries: map[string]json.RawMessage{}}
	if dir == "" {
		j.logID = newLogID()
		return j, nil
	}
	d, err := openDisk(dir, j.apply)
	if err != nil {
		return nil, err
	}
	j.disk = d
	if j.logID == "" {
		j.logID = newLogID()
		if err := d.rewrite(j.snapshot()); err != nil {
			return nil, errors.Join(err, d.close())
		}
	}
	return j, nil
}

// currentLog returns the id of the log.
func (j *journal) currentLog() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.logID
}

// bounds returns the lowest number that the journal keeps and the highest number that it has used.
// oldest is newest+1 if the journal keeps no event.
func (j *journal) bounds() (oldest, newest uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.oldest(), j.newest
}

func (j *journal) oldest() uint64 { return j.newest + 1 - uint64(len(j.events)) }

// commit stores a change as a whole: events, which are JSON objects without a number and get the
// next numbers, entries to set, and entries to remove. It returns the number of the last
// event, or the highest number used if there is none. If it returns an error, of the disk or
// ErrClosed, nothing has changed.
func (j *journal) commit(
	events []json.RawMessage, set map[string]json.RawMessage, remove []string,
) (last uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Set: set, Delete: remove}
	if len(events) > 0 {
		r.First = j.newest + 1
		r.Events = make([]json.RawMessage, len(events))
		for i, event := range events {
			r.Events[i] = number(event, r.First+uint64(i))
		}
	}
	if err := j.write(r); err != nil {
		return 0, err
	}
	return j.newest, nil
}

// ack drops the events up to through. If through is beyond the highest number used, for instance
// because the file was restored from a copy, the numbers up to through count as used: the cloud
// has seen them from this log, so they must not stand for other events.
//
// An ack is written with the next change. Events that return after a crash are sent again, and the
// cloud recognizes their numbers.
func (j *journal) ack(through uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drop(through)
}

// skip uses n numbers without events and drops all events before them. It returns the first and
// last number that are lost.
func (j *journal) skip(n uint64) (from, to uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, to = j.oldest(), j.newest+n
	return from, to, j.write(record{Through: to})
}

// reset begins a new log without events and replaces all entries.
func (j *journal) reset(logID string, entries map[string]json.RawMessage) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	if j.disk != nil {
		if err := j.disk.rewrite([]record{{Log: logID, Set: entries}}); err != nil {
			return err
		}
	}
	j.logID, j.newest, j.events, j.entries = logID, 0, nil, maps.Clone(entries)
	if j.entries == nil {
		j.entries = map[string]json.RawMessage{}
	}
	return nil
}

// eventsFrom returns events from the given number on, with their numbers: at most limit of them and
// at most maxBytes in total, but always at least one. It returns none if the journal does not keep
// the number.
func (j *journal) eventsFrom(from uint64, limit, maxBytes int) []json.RawMessage {
	j.mu.Lock()
	defer j.mu.Unlock()
	if from < j.oldest() || from > j.newest {
		return nil
	}
	events := j.events[from-j.oldest():]
	n, size := 0, 0
	for n < len(events) && n < limit {
		if size += len(events[n]) + 1; n > 0 && size > maxBytes {
			break
		}
		n++
	}
	return slices.Clone(events[:n])
}

// entriesWith returns the entries whose names begin with prefix.
func (j *journal) entriesWith(prefix string) map[string]json.RawMessage {
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

// sync returns once every committed change would survive a power cut.
func (j *journal) sync() error {
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

// close closes the journal. A second close does nothing.
func (j *journal) close() error {
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

// write appends r to the file and applies it.
func (j *journal) write(r record) error {
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
		// The change is stored even if the rewrite fails; the next change tries again.
		_ = j.disk.rewrite(j.snapshot())
	}
	return nil
}

// apply applies a record, whether it is new or read from the file.
func (j *journal) apply(r record) {
	if r.Log != "" {
		j.logID = r.Log
	}
	if len(r.Events) > 0 {
		if r.First != j.newest+1 { // an ack used the numbers before: see ack
			j.drop(r.First - 1)
		}
		j.events = append(j.events, r.Events...)
		j.newest += uint64(len(r.Events))
		j.drop(j.newest - min(j.newest, uint64(j.capacity)))
	}
	maps.Copy(j.entries, r.Set)
	for _, name := range r.Delete {
		delete(j.entries, name)
	}
	j.drop(r.Through)
}

// drop drops the events up to through.
func (j *journal) drop(through uint64) {
	if through >= j.newest {
		j.newest, j.events = through, nil
		return
	}
	if oldest := j.oldest(); through >= oldest {
		n := through - oldest + 1
		clear(j.events[:n])
		j.events = j.events[n:] // the next append that needs more memory copies only the rest
	}
}

// snapshot returns the whole state as records of moderate size.
func (j *journal) snapshot() []record {
	const perRecord = 500
	records := []record{{Log: j.logID, Set: j.entries, Through: j.oldest() - 1}}
	events, first := j.events, j.oldest()
	for len(events) > 0 {
		n := min(perRecord, len(events))
		records = append(records, record{First: first, Events: events[:n]})
		events, first = events[n:], first+uint64(n)
	}
	return records
}

// number returns event, a JSON object, with its number as the first field.
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
