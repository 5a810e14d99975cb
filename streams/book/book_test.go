package book

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const org = "01935f2e-0000-7000-8000-00000000000a"

// world is a broker with books, and the feed, the hubs and the settings of an organization.
type world struct {
	t     *testing.T
	log   *Log
	conns *streams.Conns
	clock streamstest.Clock

	mu      sync.Mutex
	events  []domain.BookEntry
	expired int
	hubs    []domain.HubID
	book    domain.Book
	changed chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	conns := streamstest.Start(t)
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	log, err := Open(t.Context(), conns.Cloud, 1)
	streamstest.Must(t, err)
	w := &world{
		t: t, log: log, conns: conns, hubs: []domain.HubID{"hub-a", "hub-b"},
		changed: make(chan struct{}),
	}
	w.set(30, domain.BookDoors, domain.BookCodes)
	return w
}

// set chooses what the book keeps.
func (w *world) set(days int, kinds ...domain.BookKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book = w.book.With(domain.BookSettings{Kinds: kinds, Days: days}, w.clock.Now().UTC())
	w.signal()
}

func (w *world) signal() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// emit stores n events of a kind.
func (w *world) emit(hub domain.HubID, kind domain.BookKind, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n {
		now := w.clock.Now().UTC()
		w.events = append(w.events, domain.BookEntry{
			Kind: kind, HubID: hub, At: now, Stored: now, Text: strconv.Itoa(len(w.events) + 1),
			Event: []byte(`{}`),
		})
	}
	w.signal()
}

// run keeps the book until the test or kill ends it. A killed process stores nothing more.
func (w *world) run(most uint64) (k *Keeper, kill func()) {
	w.t.Helper()
	k, err := NewKeeper(Config{
		Log: w.log, Progress: jsapi.NewBucket(w.conns.Cloud, streams.WebhooksBucket), Parts: 1,
		Read: w.read, Describe: w.describe, Retention: 24 * time.Hour, Now: w.clock.Now,
		MaxEntries: most, Hubs: func(context.Context, string) ([]domain.HubID, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.hubs), nil
		},
		Follow: func(ctx context.Context, fn func(string, domain.Book)) error {
			for {
				w.mu.Lock()
				book, changed := w.book, w.changed
				w.mu.Unlock()
				fn(org, book)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-changed:
				}
			}
		},
	})
	streamstest.Must(w.t, err)
	var dead atomic.Bool
	follow := streamstest.Run(w.t, "follow", k.Follow)
	serve := streamstest.Run(w.t, "serve", func(ctx context.Context) error {
		return k.Serve(ctx, 0, func() bool { return !dead.Load() })
	})
	return k, func() {
		dead.Store(true)
		serve()
		follow()
	}
}

// read returns a reader of the events. The position of an event is its number.
func (w *world) read(_ context.Context, _, after string, since time.Time) (Reader, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, _ := strconv.Atoi(after)
	if after != "" && at < w.expired {
		return nil, domain.Errorf(domain.CodeCursorExpired, "expired")
	}
	for after == "" && at < len(w.events) && w.events[at].Stored.Before(since) {
		at++
	}
	return &reader{w, max(at, w.expired)}, nil
}

type reader struct {
	w  *world
	at int
}

func (r *reader) Next(_ context.Context, limit int) (events []domain.EncodedEvent, err error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for r.at < len(r.w.events) && len(events) < limit {
		r.at++
		events = append(events, domain.EncodedEvent{Cursor: strconv.Itoa(r.at)})
	}
	return events, nil
}

func (r *reader) Ready() <-chan struct{} {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.at < len(r.w.events) {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	return r.w.changed
}

func (r *reader) Cursor() string { return strconv.Itoa(r.at) }
func (r *reader) Close()         {}

func (w *world) describe(
	_ context.Context, _ string, _ domain.BookSettings, events []domain.EncodedEvent,
) (entries []domain.BookEntry, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		at, _ := strconv.Atoi(e.Cursor)
		entries = append(entries, w.events[at-1])
	}
	return entries, nil
}

// table is what a reader makes of the stream: entries, without what was cut.
type table struct {
	mu      sync.Mutex
	entries map[uint64]domain.BookEntry
}

// follow begins a table.
func (w *world) follow() *table {
	t := &table{entries: map[uint64]domain.BookEntry{}}
	streamstest.Run(w.t, "table", func(ctx context.Context) error {
		return w.log.Follow(ctx, 0, func(items []Item) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			for _, item := range items {
				if item.Entry != nil {
					t.entries[item.Seq] = *item.Entry
				}
				if c := item.Cut; c != nil {
					maps.DeleteFunc(t.entries, func(seq uint64, e domain.BookEntry) bool {
						return c.Deletes(seq, e)
					})
				}
			}
			return nil
		})
	})
	return t
}

// texts returns the texts of the entries in their order.
func (t *table) texts() (texts []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, seq := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[seq]
		if texts = append(texts, e.Text); e.Kind == domain.BookGap {
			texts[len(texts)-1] = "gap"
		}
	}
	return texts
}

// want waits until readers from before and from now on have entries with these texts.
func (w *world) want(before *table, texts ...string) {
	w.t.Helper()
	after := w.follow()
	what := fmt.Sprintf("the entries are %v", texts)
	streamstest.Eventually(w.t, what, func() bool { return slices.Equal(before.texts(), texts) })
	streamstest.Eventually(w.t, what, func() bool { return slices.Equal(after.texts(), texts) })
}

func numbers(from, to int) (texts []string) {
	for n := from; n <= to; n++ {
		texts = append(texts, strconv.Itoa(n))
	}
	return texts
}

// A process that was killed before it stored its position, and two that both believe that they hold
// the lease, neither lose nor double an entry.
func TestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.follow()
	_, kill := w.run(0)
	w.emit("hub-a", domain.BookDoors, 150)
	w.want(got, numbers(1, 150)...)
	kill()
	w.emit("hub-b", domain.BookCodes, 10)
	w.run(0)
	w.run(0)
	for range 20 {
		w.emit("hub-a", domain.BookDoors, 2)
	}
	w.want(got, numbers(1, 200)...)
}

// A book has nothing of kinds that are not chosen, of hubs that were released, from before its time,
// and beyond its size; and nothing from before it was begun again.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.emit("hub-a", domain.BookDoors, 2)
	w.emit("hub-b", domain.BookDoors, 2)
	w.emit("hub-b", domain.BookCodes, 2)
	w.emit("hub-b", domain.BookHubs, 1) // not chosen
	got := w.follow()
	k, kill := w.run(5)
	w.want(got, numbers(1, 6)...)
	w.mu.Lock()
	w.hubs = w.hubs[1:]
	w.mu.Unlock()
	k.Released()
	w.want(got, numbers(3, 6)...)
	w.set(30, domain.BookCodes)
	w.want(got, "5", "6")
	w.emit("hub-b", domain.BookCodes, 8)
	w.want(got, append(numbers(5, 6), numbers(8, 15)...)...)
	w.set(20, domain.BookCodes) // a sweep, which finds too many
	w.want(got, numbers(11, 15)...)
	kill()
	w.clock.Advance(21 * 24 * time.Hour) // what the broker has stored is older than 20 days then
	_, kill = w.run(5)
	w.want(got)
	w.set(0)
	w.emit("hub-b", domain.BookCodes, 1)
	kill()
	w.set(20, domain.BookCodes)
	w.emit("hub-b", domain.BookCodes, 1)
	w.run(5)
	w.want(got, "17")
}

// Events that expired before they were read are one entry, however often the process starts.
func TestGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.follow()
	_, kill := w.run(0)
	w.emit("hub-a", domain.BookDoors, 2)
	w.want(got, "1", "2")
	kill()
	w.emit("hub-a", domain.BookDoors, 3)
	w.clock.Advance(25 * time.Hour)
	w.mu.Lock()
	w.expired = 5
	w.mu.Unlock()
	_, kill = w.run(0)
	w.want(got, "1", "2", "gap")
	kill()
	w.run(0)
	w.emit("hub-a", domain.BookDoors, 1)
	w.want(got, "1", "2", "gap", "6")
}
