package webhook

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventOf returns the n-th event of a feed, whose position is its number.
func eventOf(hub string, n int) Event {
	cursor := fmt.Sprintf("c%d", n)
	return Event{
		HubID: hub, Cursor: cursor, Type: "channel.observed", Position: strconv.Itoa(n),
		Body: fmt.Appendf(nil, `{"hub_id":%q,"cursor":%q}`, hub, cursor),
	}
}

// eventsOf returns events of the hubs in turn, with the positions 1, 2, ….
func eventsOf(hubs ...string) []Event {
	all := make([]Event, len(hubs))
	for i, hub := range hubs {
		all[i] = eventOf(hub, i+1)
	}
	return all
}

// feedOf is a feed that has the events after a position and then waits until ctx ends.
func feedOf(events ...Event) Feed {
	return func(
		ctx context.Context, after string, _ func(string),
	) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) {
			at, _ := strconv.Atoi(after)
			for _, event := range events[at:] {
				if !yield(event, nil) {
					return
				}
			}
			<-ctx.Done()
			yield(Event{}, ctx.Err())
		}
	}
}

// receiverFunc is a receiver that is called without a network, so that time in a synctest bubble
// stands still while nothing happens.
type receiverFunc http.HandlerFunc

func (f receiverFunc) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	f(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// inbox records what a receiver has taken, as "hub/cursor".
type inbox struct {
	mu    sync.Mutex
	taken []string
}

func (i *inbox) take(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.taken = append(i.taken, id)
}

func (i *inbox) list() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.taken)
}

// file records saved positions.
type file struct {
	mu    sync.Mutex
	saved []string
}

func (f *file) save(position string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = append(f.saved, position)
	return nil
}

func (f *file) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved[len(f.saved)-1]
}

// trial is a running forwarder.
type trial struct {
	stop context.CancelFunc
	file file
	end  chan error
}

// begin runs a forwarder of the events to a receiver within a synctest bubble.
func begin(
	t *testing.T, change func(*ForwarderConfig), receive http.HandlerFunc, events ...Event,
) *trial {
	t.Helper()
	started := &trial{end: make(chan error, 1)}
	cfg := ForwarderConfig{
		Receiver: Config{
			URL: "http://receiver.test/events", Timeout: 30 * time.Second,
			Transport: receiverFunc(receive),
		},
		Feed: feedOf(events...), Position: "0", Save: started.file.save,
		Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	f, err := NewForwarder(cfg)
	streamstest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	started.stop = cancel
	t.Cleanup(cancel)
	go func() { started.end <- f.Run(ctx) }()
	return started
}

// finish stops the forwarder and returns its error.
func (s *trial) finish() error {
	s.stop()
	return <-s.end
}

// wantList compares what was taken with words.
func wantList(t *testing.T, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// pass waits for a while of the bubble's time, so that everything that can happen has happened.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var errStop = errors.New("stop")
