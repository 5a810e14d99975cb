package hublog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestPages(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	if page := f.page(hubA, "", 10); len(page.Events) != 0 || page.HasMore || page.Next == "" {
		t.Fatalf("the page of a log that is not there: %+v", page)
	}
	base := f.page(hubA, "", 10).Next
	last := f.append(hubA, 0, 1, 500)
	f.command(hubA)
	f.append(hubA, last, 501, 200)
	f.command(hubA)
	f.command(hubA)
	// A second process has its own ring, which knows nothing of what came before it: it reads the
	// log.
	cold := startOn(t, f.conns, Config{})
	for _, reader := range []*fixture{f, cold} {
		for _, limit := range []int{1, 7, 64, 100, 500} {
			for _, after := range []string{"", base} {
				got, pages := []int{}, 0
				for {
					page := reader.page(hubA, after, limit)
					got = append(got, numbers(t, page.Events)...)
					pages++
					if page.HasMore != (len(got) < 700) ||
						page.HasMore && len(page.Events) != limit {
						t.Fatalf(
							"limit %d: %d events, has_more %v behind %d", limit, len(page.Events),
							page.HasMore, len(got),
						)
					}
					if n := len(page.Events); page.Next != page.Events[n-1].Cursor {
						t.Fatalf("next_cursor is not the last event's")
					}
					if after = page.Next; !page.HasMore {
						break
					}
				}
				if !slices.Equal(got, upTo(1, 700)) {
					t.Fatalf("limit %d: got %d events in %d pages", limit, len(got), pages)
				}
				if page := reader.page(hubA, after, limit); len(page.Events) != 0 || page.HasMore ||
					page.Next != after {
					t.Fatalf("behind the end: %+v", page)
				}
			}
		}
	}
	// An event has one cursor, however it came.
	cached, fromLog := f.page(hubA, "", 500), cold.page(hubA, "", 500)
	for i := range cached.Events {
		if string(cached.Events[i].Frame) != string(fromLog.Events[i].Frame) {
			t.Fatalf(
				"event %d is %q from the ring, %q from the log", i, cached.Events[i].Frame,
				fromLog.Events[i].Frame,
			)
		}
	}
}

// What was stored before a page is asked for is in it, whichever process stored it.
func TestPageIsFresh(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	writer, reader := startOn(t, broker.Connect(t), Config{}), startOn(t, broker.Connect(t), Config{})
	var last uint64
	after := ""
	for n := 1; n < 300; {
		count := 1 + n%3
		last = writer.append(hubA, last, n, count)
		page := reader.page(hubA, after, 100)
		if got := numbers(t, page.Events); !slices.Equal(got, upTo(n, n+count-1)) || page.HasMore {
			t.Fatalf("events %d to %d are stored, the page has %v", n, n+count-1, got)
		}
		n, after = n+count, page.Next
	}
}

func TestCursorsOfElsewhere(t *testing.T) {
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
		"of another log": {
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
		if _, err := f.Page(t.Context(), hubA, c.text, 10); codeOf(err) != c.code {
			t.Errorf("page behind a cursor %s: %v", name, err)
		}
		if _, err := f.Part(t.Context(), hubA, c.text, 10, unbounded, time.Millisecond); codeOf(
			err,
		) != c.code {
			t.Errorf("wait behind a cursor %s: %v", name, err)
		}
		r, err := f.Follow(t.Context(), hubA, c.text)
		if codeOf(err) != c.code {
			t.Errorf("follow behind a cursor %s: %v", name, err)
		}
		if err == nil {
			r.Close()
		}
	}
	if _, err := f.Page(t.Context(), "hub-none-none-none", "", 10); codeOf(
		err,
	) != domain.CodeNotFound {
		t.Errorf("a hub that nobody has: %v", err)
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
		t.Fatalf("a wait for nothing: %+v, %v, after %v", page, err, time.Since(begun))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if page, err := f.Part(ctx, hubA, base, 10, unbounded, time.Minute); err != nil ||
		len(page.Events) != 0 ||
		page.Next != base {
		t.Fatalf("a wait that is given up: %+v, %v", page, err)
	}
	var wg sync.WaitGroup
	for _, after := range []string{"", base} {
		for range 20 {
			wg.Go(func() {
				page, err := f.Part(t.Context(), hubA, after, 10, unbounded, time.Minute)
				if err != nil || !slices.Equal(numbers(t, page.Events), upTo(1, 3)) ||
					page.HasMore {
					t.Errorf("a wait after %q: %+v, %v", after, page, err)
				}
			})
		}
	}
	streamstest.Eventually(t, "all wait", func() bool { return waiting(f, hubA) == 40 })
	f.command(hubA)
	f.append(hubA, 0, 1, 3)
	wg.Wait()
}

// waiting is how many readers a hub's tail has.
func waiting(f *fixture, hub domain.HubID) int {
	t := f.shard(hub).tail(hub)
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readers
}

// A consumer that keeps reading a quiet hub, by any of the ways to read, never gets a needless 410
// and misses nothing; one that stays away does.
func TestQuietHubOverRetentions(t *testing.T) {
	t.Parallel()
	const retention = 1200 * time.Millisecond
	f := start(t, Config{Retention: retention})
	last := f.append(hubA, 0, 1, 3)
	forgotten := f.page(hubA, "", 2).Next
	polled := f.page(hubA, "", 10).Next
	waited := polled
	reader, err := f.Follow(t.Context(), hubA, polled)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for begun := time.Now(); time.Since(begun) < 4*retention; {
		page := f.page(hubA, polled, 10)
		polled = page.Next
		long, err := f.Part(t.Context(), hubA, waited, 10, unbounded, retention/5)
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(begun), err)
		}
		waited = long.Next
		if len(page.Events) > 0 || len(long.Events) > 0 {
			t.Fatalf("events again: %v %v", numbers(t, page.Events), numbers(t, long.Events))
		}
		// A stream that is cut off and comes back now goes on.
		again, err := f.Follow(t.Context(), hubA, reader.Cursor())
		if err != nil {
			t.Fatalf("after %v the stream's position is refused: %v", time.Since(begun), err)
		}
		again.Close()
	}
	if _, err := f.Page(t.Context(), hubA, forgotten, 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("a cursor that was left alone: %v", err)
	}
	if page := f.page(hubA, "", 10); len(page.Events) != 0 || page.HasMore {
		t.Errorf("the log still has %v", numbers(t, page.Events))
	}
	// The events have expired, so the log's last one is none.
	if got := f.append(hubA, 0, 4, 2); got != last+2 {
		t.Fatalf("the log goes on with %d", got)
	}
	for name, after := range map[string]string{
		"polled": polled, "waited": waited, "streamed": reader.Cursor(),
	} {
		if got := numbers(t, f.page(hubA, after, 10).Events); !slices.Equal(got, upTo(4, 5)) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if events, err := reader.Next(t.Context(), 10); err != nil ||
		!slices.Equal(numbers(t, events), upTo(4, 5)) {
		t.Errorf("the stream goes on with %v, %v", events, err)
	}
}

// A position of an emptied log is good across a restart of the broker, and commands that expire
// behind an event's cursor are no loss.
func TestEmptiedLogAcrossRestart(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{Retention: 3 * time.Second})
	f.append(hubA, 0, 1, 20)
	for range 5 {
		f.command(hubA)
	}
	after := f.page(hubA, "", 100).Next
	streamstest.Eventually(t, "all expire", func() bool {
		// Reading on, as a consumer does.
		after = f.page(hubA, after, 100).Next
		b, err := f.bounds(t.Context(), hubA, 0)
		return err == nil && b.first == 26 && b.last == 25
	})
	// As young as can be: the restart may take its time.
	after, err := f.EndCursor(t.Context(), hubA)
	if err != nil {
		t.Fatal(err)
	}
	broker.Stop()
	broker.Start(t)
	streamstest.Eventually(t, "the broker is back", func() bool {
		last, err := f.LastSequence(t.Context(), hubA)
		return err == nil && last == 25
	})
	fresh := startOn(t, broker.Connect(t), Config{Retention: 3 * time.Second})
	if page := fresh.page(hubA, after, 10); len(page.Events) != 0 {
		t.Fatalf("page: %+v", page)
	}
	if last := f.append(hubA, 0, 21, 3); last != 28 {
		t.Fatalf("the log goes on with %d", last)
	}
	for _, reader := range []*fixture{f, fresh} {
		for _, after := range []string{after, ""} {
			if got := numbers(t, reader.page(hubA, after, 10).Events); !slices.Equal(
				got, upTo(21, 23),
			) {
				t.Errorf("after %q: %v", after, got)
			}
		}
	}
}

// A log that is begun anew: its first reader sees nothing of the one before, cursors from before
// are refused, and readers are ended.
func TestLogBegunAnew(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), Config{})
	// Another replica, whose directory has not heard of it yet.
	late := startOn(t, broker.Connect(t), Config{})
	last := f.append(hubA, 0, 1, 200)
	former := f.page(hubA, "", 10).Next
	type outcome struct {
		page domain.EventPage
		err  error
	}
	var readers []*Reader
	outcomes := make(chan outcome, 2)
	for _, l := range []*fixture{f, late} {
		r, err := l.Follow(t.Context(), hubA, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		readers = append(readers, r)
		go func() {
			page, err := l.Part(t.Context(), hubA, r.Cursor(), 10, unbounded, time.Minute)
			outcomes <- outcome{page, err}
		}()
		streamstest.Eventually(t, "it waits", func() bool { return waiting(l, hubA) == 2 })
	}
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xc), After: last})
	begun := time.Now()
	<-readers[0].Ready()
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("the readers were ended after %v", took)
	}
	if got := numbers(t, f.page(hubA, "", 10).Events); len(got) != 0 {
		t.Errorf("the new log begins with %v", got)
	}
	f.append(hubA, last, 201, 5)
	<-readers[1].Ready()
	for _, r := range readers {
		if _, err := r.Next(t.Context(), 10); !errors.Is(err, ErrEpochEnded) ||
			codeOf(err) != domain.CodeCursorExpired {
			t.Errorf("a stream ends with %v", err)
		}
		if o := <-outcomes; codeOf(o.err) != domain.CodeCursorExpired {
			t.Errorf("a long poll ends with %+v, %v", o.page, o.err)
		}
	}
	if _, err := f.Page(t.Context(), hubA, former, 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("a cursor from before: %v", err)
	}
	if got := numbers(t, f.page(hubA, "", 10).Events); !slices.Equal(got, upTo(201, 205)) {
		t.Errorf("the new log has %v", got)
	}
	// The replica that is behind never shows events of the new log under the old one; it may have
	// learned from the feed that the old one ended.
	page, err := late.Page(t.Context(), hubA, former, 500)
	if err != nil && !errors.Is(err, ErrEpochEnded) {
		t.Errorf("a page of the log before: %v", err)
	}
	for _, e := range page.Events {
		if n := number(t, e); n > 200 {
			t.Errorf("event %d is shown in the log before", n)
		}
	}
	late.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xc), After: last})
	if got := numbers(t, late.page(hubA, "", 10).Events); !slices.Equal(got, upTo(201, 205)) {
		t.Errorf("the replica that was behind shows %v", got)
	}
}

func TestEndCursor(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	for n := 1; n < 20; n += 2 {
		position, err := f.EndCursor(t.Context(), hubA)
		if err != nil {
			t.Fatal(err)
		}
		marks, err := f.LastEvents(t.Context(), hubA)
		if err != nil {
			t.Fatal(err)
		}
		var last uint64
		for _, m := range marks {
			last = m.Seq
		}
		f.append(hubA, last, n, 2)
		if got := numbers(t, f.page(hubA, position, 10).Events); !slices.Equal(got, upTo(n, n+1)) {
			t.Fatalf("behind the position from before %d: %v", n, got)
		}
	}
}

// A stream that is gone and made again is shorter than what readers have seen: they end, and their
// cursors are refused.
func TestLogLost(t *testing.T) {
	t.Parallel()
	f := start(t, Config{Retention: time.Hour})
	f.append(hubA, 0, 1, 10)
	r, err := f.Follow(t.Context(), hubA, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	end := r.Cursor()
	js, err := jetstream.New(f.conns.Shard(hubA))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), streams.HubStream(hubA)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Page(t.Context(), hubA, end, 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("page: %v", err)
	}
	<-r.Ready()
	if _, err := r.Next(t.Context(), 10); codeOf(err) != domain.CodeCursorExpired {
		t.Errorf("stream: %v", err)
	}
	if page := f.page(hubA, "", 10); len(page.Events) != 0 {
		t.Errorf("page: %+v", page)
	}
}

// The retention was made longer: a cursor of the time before is young enough now, yet events behind
// it are gone.
func TestRetentionMadeLonger(t *testing.T) {
	t.Parallel()
	short := start(t, Config{Retention: 300 * time.Millisecond})
	last := short.append(hubA, 0, 1, 10)
	page := short.page(hubA, "", 5)
	end := short.page(hubA, page.Next, 10).Next
	streamstest.Eventually(t, "all expire", func() bool {
		b, err := short.bounds(t.Context(), hubA, 0)
		return err == nil && b.first == last+1
	})
	long := startOn(t, short.conns, Config{})
	if err := long.Ensure(t.Context(), hubA); err != nil {
		t.Fatal(err)
	}
	long.append(hubA, 0, 11, 2)
	for range 2 {
		if page, err := long.Page(t.Context(), hubA, page.Next, 10); codeOf(
			err,
		) != domain.CodeCursorExpired {
			t.Errorf("page behind event 5: %v, %v", numbers(t, page.Events), err)
		}
		if _, err := long.Follow(t.Context(), hubA, page.Next); codeOf(
			err,
		) != domain.CodeCursorExpired {
			t.Errorf("stream behind event 5: %v", err)
		}
		for _, after := range []string{end, ""} {
			if got := numbers(t, long.page(hubA, after, 10).Events); !slices.Equal(
				got, upTo(11, 12),
			) {
				t.Errorf("page behind %q: %v", after, got)
			}
		}
	}
}
