package hublog

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// model is what a log should have: its messages in order, each with when it was stored at the
// earliest.
type model struct {
	t     *rapid.T
	hub   domain.HubID
	now   []*fixture // processes that read and write; each has rings and a cache of its own
	seqs  []message
	known []place
	count int
	last  uint64
}

type message struct {
	n      int // 0 for a command
	stored time.Time
}

// place is a cursor that was given out, and the number of the last event before it.
type place struct {
	text string
	n    int
}

const modelRetention = 250 * time.Millisecond

func (m *model) process(name string) *fixture {
	return m.now[rapid.IntRange(0, len(m.now)-1).Draw(m.t, name)]
}

func (m *model) append(count int) {
	f := m.process("writer")
	epoch, _ := f.epochOf(m.hub)
	records := make([]Record, count)
	for i := range records {
		records[i] = record(m.hub, epoch.ID, m.count+1+i)
	}
	// The last event may expire at any moment, and then the log has none.
	before := time.Now()
	last, err := f.Append(m.t.Context(), m.hub, m.last, records)
	if err != nil {
		marks, err := f.LastEvents(m.t.Context(), m.hub)
		if err != nil || len(marks) > 0 {
			m.t.Fatalf("append behind %d: the last events are %v, %v", m.last, marks, err)
		}
		before = time.Now()
		if last, err = f.Append(m.t.Context(), m.hub, 0, records); err != nil {
			m.t.Fatalf("append to an empty log: %v", err)
		}
	}
	for range count {
		m.count++
		m.seqs = append(m.seqs, message{m.count, before})
	}
	if m.last = last; int(last) != len(m.seqs) {
		m.t.Fatalf("%d messages were stored, the last is %d", len(m.seqs), last)
	}
}

func (m *model) command() {
	before := time.Now()
	if _, err := m.process("commander").AppendCommand(m.t.Context(), m.hub, []byte(`{}`), nil); err != nil {
		m.t.Fatal(err)
	}
	m.seqs = append(m.seqs, message{0, before})
}

// read reads a page, behind a cursor that was given out or from the oldest event on.
func (m *model) read(wait time.Duration) {
	from := place{}
	if len(m.known) > 0 && rapid.IntRange(0, 3).Draw(m.t, "behind a cursor") > 0 {
		// Mostly one of the latest.
		from = m.known[max(0, len(m.known)-1-rapid.IntRange(0, 9).Draw(m.t, "back"))]
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
		m.t.Fatalf("page behind event %d, %v old: %v", from.n, ended.Sub(c.stored()), err)
	}
	got := numbersOf(m.t, page.Events)
	last := from.n
	switch {
	case len(got) > 0:
		first := got[0]
		if from.text != "" && first != from.n+1 || from.text == "" && m.keptUntil(first-1, ended) {
			m.t.Fatalf("page behind event %d begins with %d", from.n, first)
		}
		last = got[len(got)-1]
		if !slices.Equal(got, upTo(first, last)) || len(got) > limit {
			m.t.Fatalf("page behind event %d, limit %d: %v", from.n, limit, got)
		}
	case from.text == "":
		if m.keptUntil(m.count, ended) {
			m.t.Fatalf("nothing from the oldest on, but event %d is not old", m.count)
		}
		last = m.count
	}
	if page.HasMore != (last < m.count) ||
		page.HasMore && (len(got) == 0 || len(got) < limit && bytes == unbounded) {
		m.t.Fatalf(
			"page of %d up to event %d of %d says has_more %v", len(got), last, m.count,
			page.HasMore,
		)
	}
	size := 0
	for _, e := range page.Events {
		size += len(e.Envelope)
	}
	if size > bytes && len(got) > 1 {
		m.t.Fatalf("page of %d events has %d bytes of at most %d", len(got), size, bytes)
	}
	for _, e := range page.Events {
		m.known = append(m.known, place{e.Cursor, numbersOf(m.t, []domain.EncodedEvent{e})[0]})
	}
	m.known = append(m.known, place{page.Next, last})
	if c, err := parseCursor(page.Next); err != nil ||
		!page.HasMore && begun.Sub(c.stored()) > modelRetention*3/4 {
		m.t.Fatalf("at the log's end next_cursor is %v old", begun.Sub(c.stored()))
	}
}

// keptUntil reports whether the event numbered n cannot have expired before then. A cursor tells
// its event's time to the millisecond below, so an event can count as expired that much early.
func (m *model) keptUntil(n int, then time.Time) bool {
	for _, s := range m.seqs {
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
		if _, err := fmt.Sscanf(string(e.Envelope[bytes.LastIndexByte(e.Envelope, ':'):]), ":%d", &n); err != nil {
			t.Fatalf("%q: %v", e.Envelope, err)
		}
		all = append(all, n)
	}
	return all
}

// Random appends, commands, reads and passing time, over two processes: nothing is missed, nothing
// is repeated, has_more is exact, and a 410 is only for what is too old.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	cfg := Config{Retention: modelRetention, RingEvents: 40, CacheBytes: 200_000}
	processes := []*fixture{startOn(t, broker.Connect(t), cfg), startOn(t, broker.Connect(t), cfg)}
	var hubs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		n := hubs.Add(1)
		m := &model{t: t, hub: domain.HubID(fmt.Sprintf("hub-aaaa-cccc-%04d", n)), now: processes}
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
