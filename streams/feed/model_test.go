package feed

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// model is the expected state of a hub's log.
type model struct {
	t   *rapid.T
	hub domain.HubID
	// processes read and write; each has rings and a cache of its own.
	processes []*fixture
	// messages are all messages in order.
	messages []message
	// cursors are all cursors that pages have returned.
	cursors []knownCursor
	// count is the number of the last event, and last its sequence.
	count int
	last  uint64
}

type message struct {
	// n is the event's number; 0 for a command or a state.
	n int
	// stored is before the message was stored.
	stored time.Time
}

// knownCursor is a cursor and the number of the last event before it.
type knownCursor struct {
	text string
	n    int
}

const modelRetention = 250 * time.Millisecond

func (m *model) process(name string) *fixture {
	return m.processes[rapid.IntRange(0, len(m.processes)-1).Draw(m.t, name)]
}

func (m *model) append(count int) {
	f := m.process("writer")
	epoch, _ := f.epochOf(m.hub)
	records := make([]journal.Record, count)
	for i := range records {
		records[i] = record(m.hub, epoch.ID, m.count+1+i)
	}
	// Once the last event has expired, an append must expect none.
	before := time.Now()
	last, err := f.Append(m.t.Context(), m.hub, m.last, records)
	if err != nil {
		found, readErr := f.LastEvents(m.t.Context(), m.hub)
		if err = errors.Join(readErr, notConflict(err)); err != nil || len(found) > 0 {
			m.t.Fatalf("append after %d: the last events are %v, %v", m.last, found, err)
		}
		before = time.Now()
		if last, err = f.Append(m.t.Context(), m.hub, 0, records); err != nil {
			m.t.Fatalf("append to an empty log: %v", err)
		}
	}
	for range count {
		m.count++
		m.messages = append(m.messages, message{m.count, before})
	}
	if m.last = last; int(last) != len(m.messages) {
		m.t.Fatalf("Append = %d after %d messages", last, len(m.messages))
	}
}

// notConflict returns an error that does not say that the log has another end.
func notConflict(err error) error {
	if errors.Is(err, jsapi.ErrConflict) {
		return nil
	}
	return err
}

func (m *model) command() {
	before := time.Now()
	f := m.process("commander")
	epoch, _ := f.epochOf(m.hub)
	var err error
	if rapid.Bool().Draw(m.t, "a state") {
		_, err = f.AppendState(m.t.Context(), m.hub, epoch.ID, "", []byte("state"))
	} else {
		_, err = f.AppendCommand(m.t.Context(), m.hub, []byte(`{}`))
	}
	streamstest.Must(m.t, err)
	m.messages = append(m.messages, message{0, before})
}

// read reads a page after a known cursor or from the oldest event on.
func (m *model) read(wait time.Duration) {
	from := knownCursor{}
	if len(m.cursors) > 0 && rapid.IntRange(0, 3).Draw(m.t, "after a cursor") > 0 {
		// One of the last ten cursors.
		from = m.cursors[max(0, len(m.cursors)-1-rapid.IntRange(0, 9).Draw(m.t, "back"))]
	}
	limit := rapid.SampledFrom([]int{1, 3, 10, 70, 500}).Draw(m.t, "limit")
	bytes := rapid.SampledFrom([]int{1, 500, 3000, unbounded}).Draw(m.t, "bytes")
	begun := time.Now()
	page, err := m.process("reader").Part(m.t.Context(), m.hub, from.text, limit, bytes, wait)
	ended := time.Now()
	if err != nil {
		c, _ := parseCursor(from.text)
		if domain.CodeOf(err) == domain.CodeCursorExpired && from.text != "" &&
			ended.Sub(c.stored()) > modelRetention {
			return
		}
		m.t.Fatalf(
			"page after event %d, whose cursor is %v old: %v", from.n, ended.Sub(c.stored()), err,
		)
	}
	got := numbersOf(m.t, page.Events)
	last := from.n
	switch {
	case len(got) > 0:
		first := got[0]
		if from.text != "" && first != from.n+1 || from.text == "" && m.keptUntil(first-1, ended) {
			m.t.Fatalf("page after event %d begins with event %d", from.n, first)
		}
		last = got[len(got)-1]
		if !slices.Equal(got, upTo(first, last)) || len(got) > limit {
			m.t.Fatalf("page after event %d with limit %d has %v", from.n, limit, got)
		}
	case from.text == "":
		if m.keptUntil(m.count, ended) {
			m.t.Fatalf("page of the oldest events is empty, but event %d is not old", m.count)
		}
		last = m.count
	}
	if page.HasMore != (last < m.count) ||
		page.HasMore && (len(got) == 0 || len(got) < limit && bytes == unbounded) {
		m.t.Fatalf(
			"page of %d events up to event %d of %d has has_more %v", len(got), last, m.count,
			page.HasMore,
		)
	}
	size := 0
	for _, e := range page.Events {
		size += len(e.Envelope)
	}
	if size > bytes && len(got) > 1 {
		m.t.Fatalf("page of %d events has %d bytes, want at most %d", len(got), size, bytes)
	}
	for _, e := range page.Events {
		m.cursors = append(
			m.cursors, knownCursor{e.Cursor, numbersOf(m.t, []domain.EncodedEvent{e})[0]},
		)
	}
	m.cursors = append(m.cursors, knownCursor{page.Next, last})
	if c, err := parseCursor(page.Next); err != nil ||
		!page.HasMore && begun.Sub(c.stored()) > modelRetention*3/4 {
		m.t.Fatalf("next_cursor at the log's end is %v old", begun.Sub(c.stored()))
	}
}

// keptUntil reports whether the event numbered n cannot have expired before then. Cursors round an
// event's time down to the millisecond, so an event can expire a millisecond early.
func (m *model) keptUntil(n int, then time.Time) bool {
	for _, s := range m.messages {
		if s.n == n && n > 0 {
			return then.Before(s.stored.Add(modelRetention - time.Millisecond))
		}
	}
	return false
}

func numbersOf(t *rapid.T, events []domain.EncodedEvent) []int {
	all := []int{}
	for _, e := range events {
		var n int
		number := string(e.Envelope[bytes.LastIndexByte(e.Envelope, ':'):])
		if _, err := fmt.Sscanf(number, ":%d", &n); err != nil {
			t.Fatalf("number in %q: %v", e.Envelope, err)
		}
		all = append(all, n)
	}
	return all
}

// Two processes append and read at random while time passes. No event is missed or repeated,
// has_more is exact, and only cursors older than the retention are answered 410.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	cfg := Config{Retention: modelRetention, RingEvents: 40, CacheBytes: 200_000}
	processes := []*fixture{startOn(t, broker.Connect(t), cfg), startOn(t, broker.Connect(t), cfg)}
	var hubs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		n := hubs.Add(1)
		m := &model{
			t:         t,
			hub:       domain.HubID(fmt.Sprintf("hub-aaaa-cccc-%04d", n)),
			processes: processes,
		}
		for _, p := range processes {
			p.begin(m.hub, domain.Epoch{ID: domain.NewEpochID(uint32(n))})
		}
		t.Repeat(map[string]func(*rapid.T){
			"append one": func(*rapid.T) { m.append(1) },
			"append":     func(t *rapid.T) { m.append(rapid.IntRange(2, 130).Draw(t, "count")) },
			"command":    func(*rapid.T) { m.command() },
			"read":       func(*rapid.T) { m.read(0) },
			"read more":  func(*rapid.T) { m.read(0) },
			"read on":    func(*rapid.T) { m.read(0) },
			"long poll": func(t *rapid.T) {
				m.read(time.Duration(rapid.IntRange(1, 20).Draw(t, "wait")) * time.Millisecond)
			},
			"pass a time": func(t *rapid.T) {
				// The broker removes expired messages by its own clock, so real time must pass.
				time.Sleep(time.Duration(rapid.IntRange(1, 90).Draw(t, "time")) * time.Millisecond)
			},
		})
	})
}
