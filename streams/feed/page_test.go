package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// Pages of any size have every event once, with the same cursors and frames from the ring and from
// the stream.
func TestPages(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	base := f.page(hubA, "", 10)
	if len(base.Events) != 0 || base.HasMore || base.Next == "" {
		t.Fatalf("page of a hub without a log is %+v, want no events and a cursor", base)
	}
	last := f.append(hubA, 0, 1, 500)
	f.command(hubA)
	f.append(hubA, last, 501, 200)
	f.command(hubA)
	f.command(hubA)
	want, _ := f.all("", 500)
	// A second process has rings of its own. They lack the events stored before it started, which
	// it reads from the stream.
	for _, reader := range []*fixture{f, startOn(t, f.conns, Config{})} {
		for _, limit := range []int{1, 7, 64, 100, 500} {
			got, end := reader.all(base.Next, limit)
			same := func(a, b domain.EncodedEvent) bool { return string(a.Frame) == string(b.Frame) }
			if !slices.Equal(numbers(t, got), upTo(1, 700)) || !slices.EqualFunc(got, want, same) {
				t.Fatalf("limit %d: got %d events, want 1 to 700 with the same frames", limit, len(got))
			}
			if page := reader.page(hubA, end, limit); len(page.Events) != 0 || page.HasMore ||
				page.Next != end || end != got[699].Cursor {
				t.Fatalf("page after the end is %+v, want no events and the same cursor", page)
			}
		}
	}
}

func TestInvalidPageCursors(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	const hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
	f.begin(hubB, domain.Epoch{ID: domain.NewEpochID(0xb)})
	f.append(hubA, 0, 1, 5)
	f.append(hubB, 0, 1, 5)
	now := time.Now().UnixMilli()
	own := domain.NewEpochID(0x0a)
	for name, c := range map[string]struct {
		text string
		code domain.Code
	}{
		"of another hub": {f.page(hubB, "", 2).Next, domain.CodeCursorExpired},
		"of another epoch": {
			cursor{domain.EpochID{9}, 2, now}.String(), domain.CodeCursorExpired,
		},
		"beyond the end":     {cursor{own, 6, now}.String(), domain.CodeCursorExpired},
		"far beyond the end": {cursor{own, 1 << 47, now}.String(), domain.CodeCursorExpired},
		"too old": {
			cursor{own, 2, now - time.Hour.Milliseconds() - 1}.String(), domain.CodeCursorExpired,
		},
		"garbage":       {"garbage", domain.CodeInvalidRequest},
		"the end":       {cursor{own, 5, now}.String(), ""},
		"the beginning": {cursor{own, 0, now}.String(), ""},
	} {
		for way, read := range map[string]func(context.Context) error{
			"Part": func(ctx context.Context) error {
				_, err := f.Part(ctx, hubA, c.text, 10, unbounded, time.Millisecond)
				return err
			},
			"Follow": func(ctx context.Context) error {
				r, err := f.Follow(ctx, hubA, c.text)
				if err == nil {
					r.Close()
				}
				return err
			},
		} {
			// At the same time: an end before the cursor must be repeated for seconds.
			t.Run(way+" after a cursor "+name, func(t *testing.T) {
				t.Parallel()
				if err := read(t.Context()); codeOf(err) != c.code {
					t.Errorf("got %v, want %q", err, c.code)
				}
			})
		}
	}
	_, err := f.Page(t.Context(), "hub-none-none-none", "", 10)
	if codeOf(err) != domain.CodeNotFound {
		t.Errorf("Page of a hub without an organization: %v, want not_found", err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	base := f.page(hubA, "", 10).Next
	begun := time.Now()
	page, err := f.Part(t.Context(), hubA, base, 10, unbounded, 100*time.Millisecond)
	if err != nil || len(page.Events) != 0 || page.Next != base ||
		time.Since(begun) < 100*time.Millisecond {
		t.Fatalf(
			"Part = %+v, %v after %v; want no events after 100ms", page, err, time.Since(begun),
		)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // more than it takes to read
	defer cancel()
	if page, err := f.Part(ctx, hubA, base, 10, unbounded, time.Minute); err != nil ||
		len(page.Events) != 0 ||
		page.Next != base {
		t.Fatalf("Part with a context that ended = %+v, %v; want no events, nil", page, err)
	}
	var wg sync.WaitGroup
	for _, after := range []string{"", base} {
		for range 20 {
			wg.Go(func() {
				page, err := f.Part(t.Context(), hubA, after, 10, unbounded, time.Minute)
				if err != nil || !slices.Equal(numbers(t, page.Events), upTo(1, 3)) ||
					page.HasMore {
					t.Errorf("Part after %q = %+v, %v; want events 1 to 3", after, page, err)
				}
			})
		}
	}
	streamstest.Eventually(t, "40 readers wait", func() bool { return waiting(f, hubA) == 40 })
	f.command(hubA)
	f.append(hubA, 0, 1, 3)
	wg.Wait()
}

// waiting returns how many readers a hub's tail has.
func waiting(f *fixture, hub domain.HubID) int {
	t := f.shard(hub).tail(hub)
	if t == nil {
		return 0
	}
	t.Lock()
	defer t.Unlock()
	return t.readers
}

// After a new epoch has begun, pages have no events of the former epoch, its cursors are rejected,
// and its readers end.
func TestNewEpoch(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	// Another replica, whose view of the directory does not have the new epoch yet.
	late := startOn(t, broker.Connect(t), Config{})
	last := f.append(hubA, 0, 1, 200)
	former := f.page(hubA, "", 10).Next
	var readers []*Reader
	polled := make(chan error, 2)
	for _, l := range []*fixture{f, late} {
		r := l.follow(hubA, "")
		readers = append(readers, r)
		go func() {
			_, err := l.Part(t.Context(), hubA, r.Cursor(), 10, unbounded, time.Minute)
			polled <- err
		}()
		streamstest.Eventually(t, "both readers wait", func() bool { return waiting(l, hubA) == 2 })
	}
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xc), After: last})
	<-readers[0].Ready()
	f.want("the new epoch", "", nil)
	f.append(hubA, last, 201, 5)
	<-readers[1].Ready()
	for _, r := range readers {
		if _, err := r.Next(t.Context(), 10); !errors.Is(err, ErrEpochEnded) ||
			codeOf(err) != domain.CodeCursorExpired {
			t.Errorf("Next: %v, want ErrEpochEnded", err)
		}
		if err := <-polled; codeOf(err) != domain.CodeCursorExpired {
			t.Errorf("Part: %v, want cursor_expired", err)
		}
	}
	f.wantError("a cursor of the former epoch", former, domain.CodeCursorExpired)
	f.want("the new epoch", "", upTo(201, 205))
	// The replica that is behind never returns events of the new epoch as events of the former one.
	// From the feed it may know that the former epoch has ended.
	page, err := late.Page(t.Context(), hubA, former, 500)
	if err != nil && !errors.Is(err, ErrEpochEnded) {
		t.Errorf("Page at the replica that is behind: %v, want nil or ErrEpochEnded", err)
	}
	for _, e := range page.Events {
		if n := number(t, e); n > 200 {
			t.Errorf("the former epoch has event %d, want 1 to 200", n)
		}
	}
	late.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xc), After: last})
	late.want("the replica that was behind", "", upTo(201, 205))
}

// When the journal has lost events that readers have seen, as by a power cut on a disk that does
// not sync, the readers end.
func TestLogLost(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 10)
	r := f.follow(hubA, "")
	f.shard(hubA).tail(hubA).skipTo(last + 5) // readers have seen five events more
	f.wantError("the former end", r.Cursor(), domain.CodeCursorExpired)
	<-r.Ready()
	if _, err := r.Next(t.Context(), 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("Next: %v, want cursor_expired", err)
	}
	f.want("the log", "", upTo(1, 10))
}

// appendLarge appends count events of at least size bytes to hubA's empty log, with the numbers
// from 1 on. It returns the last sequence.
func (f *fixture) appendLarge(count, size int) (last uint64) {
	f.tb.Helper()
	for n := range count {
		r := event(n + 1)
		r.Payload = fmt.Appendf(
			nil, `{"type":"channel.observed","pad":%q,"data":{"n":%d}}`, strings.Repeat("x", size), n+1,
		)
		var err error
		if last, err = f.Append(f.tb.Context(), hubA, last, []journal.Record{r}); err != nil {
			f.tb.Fatal(err)
		}
	}
	return last
}

// A read in the middle of a block joins what is cached of it. With large events the joined read was
// cut before it reached the wanted event, and the page began with events before its cursor.
func TestPageAfterACutJoin(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 1})
	f.appendLarge(60, 15_000)
	events := f.page(hubA, "", 60).Events
	// Another process has only the first events in its cache.
	g := startOn(t, f.conns, Config{RingEvents: 1})
	g.page(hubA, "", 2)
	if got := numbers(t, g.page(hubA, events[49].Cursor, 5).Events); !slices.Equal(got, upTo(51, 55)) {
		t.Errorf("page after event 50 has %v, want 51 to 55", got)
	}
}

// The last event before a reset is the same one, also where one answer of the stream does not reach
// it: the place of a feed.gap was then that of an older event.
func TestLastFormer(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.appendLarge(60, 10_000)
	f.awaitView(hubA, last)
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xc), After: last})
	at, err := f.LastFormer(t.Context(), "", hubA)
	if want := f.LastStored(hubA); err != nil || at != want {
		t.Errorf("LastFormer = %d, %v; want %d", at, err, want)
	}
}
