package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Random hubs, failures and durations: every event arrives, each hub's in order, one request of a
// hub at a time; and each saved position has only delivered events before it.
func TestEveryEventArrivesInOrder(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(round)))
			var hubs []string
			for range 300 {
				hubs = append(hubs, fmt.Sprintf("hub-%d", random.IntN(10)))
			}
			events := eventsOf(hubs...)
			var mu sync.Mutex
			delivered := map[string]bool{}
			next := map[string]int{} // per hub: the number of the last event
			busy := map[string]bool{}
			receive := func(w http.ResponseWriter, r *http.Request) {
				hub, _, _ := strings.Cut(r.Header.Get("Webhook-Id"), "/")
				mu.Lock()
				if busy[hub] {
					t.Errorf("two requests of %s at once", hub)
				}
				busy[hub] = true
				pause, fails := time.Duration(random.IntN(2000))*time.Millisecond,
					random.IntN(3) == 0
				mu.Unlock()
				time.Sleep(pause)
				mu.Lock()
				defer mu.Unlock()
				busy[hub] = false
				if fails {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				for _, event := range cursorsIn(t, r) {
					n, _ := strconv.Atoi(event[1:])
					if n <= next[hub] {
						t.Errorf("%s got event %d after %d", hub, n, next[hub])
					}
					next[hub] = n
					delivered[event] = true
				}
			}
			f := begin(t, func(c *ForwarderConfig) {
				c.Batch = round%2 == 1
				c.maxEvents = 1 + random.IntN(100)
				c.maxRequests = 1 + random.IntN(20)
				save := c.Save
				c.Save = func(position string) error {
					mu.Lock()
					defer mu.Unlock()
					to, _ := strconv.Atoi(position)
					for _, event := range events[:to] {
						if !delivered[event.Cursor] {
							t.Errorf("position %d saved before event %s arrived", to, event.Cursor)
						}
					}
					return save(position)
				}
			}, receive, events...)
			pass(time.Hour)
			if err := f.finish(); err != nil || len(delivered) != len(events) ||
				f.file.last() != "300" {
				t.Errorf(
					"got %d events, position %s, %v, want %d and position 300",
					len(delivered), f.file.last(), err, len(events),
				)
			}
		})
	}
}

// cursorsIn returns the cursors of the events of a request, of one or of several.
func cursorsIn(t *testing.T, r *http.Request) []string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var one struct {
		Cursor string
		Data   []struct{ Cursor string }
	}
	if err := json.Unmarshal(body, &one); err != nil {
		t.Errorf("body %q: %v", body, err)
	}
	if one.Cursor != "" {
		return []string{one.Cursor}
	}
	var all []string
	for _, event := range one.Data {
		all = append(all, event.Cursor)
	}
	return all
}

// A hub whose events are not taken stops no other hub, until as much waits as memory may hold. Then
// the feed pauses, and continues once the hub's events are taken.
func TestAStuckHubStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		var mu sync.Mutex
		stuck := true
		receive := func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			id := r.Header.Get("Webhook-Id")
			if stuck && strings.HasPrefix(id, "a/") {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			box.take(id)
		}
		f := begin(t, func(c *ForwarderConfig) { c.maxEvents = 3 }, receive,
			eventsOf("b", "a", "b", "c", "a", "b", "a", "b", "c")...)
		pass(10 * time.Minute)
		wantList(t, box.list(), "b/c1 b/c3 c/c4 b/c6")
		if f.file.last() != "1" {
			t.Errorf("position %s saved, want 1: event 2 was not taken", f.file.last())
		}
		mu.Lock()
		stuck = false
		mu.Unlock()
		pass(10 * time.Minute)
		if len(box.list()) != 9 || f.file.last() != "9" {
			t.Errorf("got %v, position %s, want 9 events", box.list(), f.file.last())
		}
		if err := f.finish(); err != nil {
			t.Error(err)
		}
	})
}

// Each answer has its meaning, a receiver that does not answer is asked again after the timeout, and
// all attempts for an event have the same id and body.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status      int
		header      []string
		again       bool
		atLeast     time.Duration // until the second attempt
		atMost      time.Duration
		wantErr     error
		wantMessage string
	}{
		"200":     {status: 200},
		"204":     {status: 204},
		"301":     {status: 301, header: []string{"Location", "/elsewhere"}, again: true},
		"400":     {status: 400, again: true, atMost: 500 * time.Millisecond},
		"409":     {status: 409, again: true, header: []string{"Retry-After", "7"}, atMost: time.Second},
		"410":     {status: 410, wantErr: ErrGone},
		"429":     {status: 429, again: true, header: []string{"Retry-After", "7"}, atLeast: 7 * time.Second},
		"503":     {status: 503, again: true, header: []string{"Retry-After", "90"}, atLeast: 90 * time.Second},
		"silence": {again: true, atLeast: 30 * time.Second, atMost: 31 * time.Second},
		"429 date": {
			status: 429, again: true,
			header:  []string{"Retry-After", "Sat, 01 Jan 2000 00:01:00 GMT"}, // the bubble's midnight
			atLeast: time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var box inbox
				var times []time.Time
				receive := func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/events" || r.Method != http.MethodPost {
						t.Errorf("got %s %s, want POST /events", r.Method, r.URL.Path)
					}
					body, _ := io.ReadAll(r.Body)
					box.take(r.Header.Get("Webhook-Id") + "=" + string(body))
					times = append(times, time.Now())
					if len(times) > 1 {
						return
					}
					if tt.status == 0 {
						<-r.Context().Done()
						return
					}
					for i := 0; i < len(tt.header); i += 2 {
						w.Header().Set(tt.header[i], tt.header[i+1])
					}
					w.WriteHeader(tt.status)
				}
				f := begin(t, nil, receive, eventsOf("a")...)
				pass(10 * time.Minute)
				if err := f.finish(); !errors.Is(err, tt.wantErr) {
					t.Errorf("ended with %v, want %v", err, tt.wantErr)
				}
				posted := `a/c1={"hub_id":"a","cursor":"c1"}`
				if !tt.again {
					wantList(t, box.list(), posted)
					return
				}
				wantList(t, box.list(), posted+" "+posted)
				if wait := times[1].Sub(times[0]); wait < tt.atLeast ||
					tt.atMost > 0 && wait > tt.atMost {
					t.Errorf(
						"the second attempt came after %v, want %v to %v",
						wait, tt.atLeast, tt.atMost,
					)
				}
			})
		})
	}
}

// Waits double up to a minute, and attempts never end.
func TestBackoffForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		f := begin(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			attempts++
			w.WriteHeader(http.StatusNotFound)
		}, eventsOf("a")...)
		pass(3 * time.Hour)
		if err := f.finish(); err != nil || attempts < 3*60 || attempts > 2*3*60+20 {
			t.Errorf("%d attempts in three hours, %v, want one or two a minute", attempts, err)
		}
		if f.file.last() != "0" {
			t.Errorf("position %s, want 0", f.file.last())
		}
	})
}

// Skipped events are not posted; the position moves past them.
func TestSkip(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		receive := func(w http.ResponseWriter, r *http.Request) {
			box.take(r.Header.Get("Webhook-Id"))
		}
		f := begin(t, func(c *ForwarderConfig) { c.Skip = []string{"c2", "a/c4", "b/c5"} }, receive,
			eventsOf("a", "a", "b", "a", "a")...)
		pass(time.Minute)
		if err := f.finish(); err != nil || f.file.last() != "5" {
			t.Errorf("position %s, %v, want 5", f.file.last(), err)
		}
		if got := len(box.list()); got != 3 {
			t.Errorf("got %v, want c1, c3 and c5", box.list())
		}
	})
}

// A request under way when the forwarder is stopped is finished, and its event is not posted again
// after the restart.
func TestStopFinishesRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		receive := func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(3 * time.Second):
				box.take(r.Header.Get("Webhook-Id"))
			case <-r.Context().Done():
			}
		}
		f := begin(t, nil, receive, eventsOf("a", "a")...)
		pass(time.Second)
		if err := f.finish(); err != nil || f.file.last() != "1" {
			t.Errorf("position %s, %v, want 1", f.file.last(), err)
		}
		wantList(t, box.list(), "a/c1")
	})
}

// The errors of the feed, and of the file, end the forwarder.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ForwarderConfig){
		"feed": func(c *ForwarderConfig) {
			c.Feed = func(
				context.Context, string, func(string),
			) iter.Seq2[Event, error] {
				return func(yield func(Event, error) bool) {
					yield(Event{}, errStop)
				}
			}
		},
		"first save": func(c *ForwarderConfig) { c.Save = func(string) error { return errStop } },
		"later save": func(c *ForwarderConfig) {
			c.Save = func(position string) error {
				if position == "0" {
					return nil
				}
				return errStop
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := begin(t, change, func(http.ResponseWriter, *http.Request) {}, eventsOf("a")...)
			if err := <-f.end; !errors.Is(err, errStop) {
				t.Errorf("%s: ended with %v, want %v", name, err, errStop)
			}
		})
	}
}

// Positions without an event are saved once the events before them are delivered.
func TestPositionsWithoutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := func(
			ctx context.Context, _ string, onPosition func(string),
		) iter.Seq2[Event, error] {
			return func(yield func(Event, error) bool) {
				onPosition("1")
				time.Sleep(3 * time.Second)
				yield(eventOf("a", 2), nil)
				onPosition("3")
				<-ctx.Done()
				yield(Event{}, ctx.Err())
			}
		}
		receive := func(http.ResponseWriter, *http.Request) { time.Sleep(10 * time.Second) }
		f := begin(t, func(c *ForwarderConfig) { c.Feed = feed }, receive)
		for _, want := range []string{"1", "1", "3"} {
			pass(5 * time.Second)
			if f.file.last() != want {
				t.Errorf("position %s saved, want %s", f.file.last(), want)
			}
		}
		if err := f.finish(); err != nil {
			t.Error(err)
		}
	})
}

// NewForwarder rejects addresses to which nothing can be posted.
func TestForwarderRejects(t *testing.T) {
	t.Parallel()
	for _, to := range []string{
		"ftp://host/", "host:80", "http://:80/", "http://user:password@host/",
		"http://host/#fragment",
	} {
		if _, err := NewForwarder(ForwarderConfig{Feed: feedOf(), Receiver: Config{URL: to}}); err == nil ||
			!strings.Contains(err.Error(), to) {
			t.Errorf("%s: got %v, want an error that names it", to, err)
		}
	}
}

// A batch has up to 100 events of one hub in order, which are the same in all attempts even if more
// events of the hub arrive meanwhile.
func TestBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hubs []string
		for range 150 {
			hubs = append(hubs, "a")
		}
		var ids []string
		var sizes []int
		f := begin(t, func(c *ForwarderConfig) { c.Batch = true },
			func(w http.ResponseWriter, r *http.Request) {
				ids = append(ids, r.Header.Get("Webhook-Id"))
				sizes = append(sizes, len(cursorsIn(t, r)))
				time.Sleep(time.Second) // more events arrive
				if len(ids) == 1 {
					w.WriteHeader(http.StatusBadGateway)
				}
			}, eventsOf(hubs...)...)
		pass(time.Minute)
		if err := f.finish(); err != nil || len(ids) < 3 || ids[0] != ids[1] ||
			sizes[0] != sizes[1] || ids[1] == ids[2] || sizes[2] != min(100, 150-sizes[0]) {
			t.Errorf("got the ids %v, sizes %v, %v", ids, sizes, err)
		}
	})
}
