package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// world is what a Deliverer needs, in memory: one feed, one webhook, its progress and its receiver.
type world struct {
	mu      sync.Mutex
	events  []domain.EncodedEvent
	changed chan struct{}
	// expired is how many events are gone.
	expired  int
	webhooks domain.WebhooksState
	relist   chan struct{}
	progress domain.WebhookProgress
	revision uint64
	mails    []domain.WebhookDisableCause
	// answer answers a request of the receiver.
	answer func(r received) int
	taken  []received
}

// received is a request that the receiver got.
type received struct {
	id         string
	signatures int
	types      []string
	cursors    []string
	position   string
}

func newWorld(t *testing.T) (*world, *Deliverer) {
	t.Helper()
	vault, err := streams.NewVault(make([]byte, 32))
	streamstest.Must(t, err)
	w := &world{
		changed: make(chan struct{}), relist: make(chan struct{}, 1),
		answer: func(received) int { return http.StatusNoContent },
	}
	d, err := NewDeliverer(DelivererConfig{
		Feeds: w, Progress: w, Disable: w.disable, Follow: w.follow, Vault: Vault{vault}, Parts: 1,
		Retention: 24 * time.Hour, Mail: func(
			_ context.Context, _ domain.Webhook, cause domain.WebhookDisableCause, _ time.Time,
		) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mails = append(w.mails, cause)
			return nil
		},
	})
	streamstest.Must(t, err)
	d.transport = w
	w.record(d, func(s domain.WebhooksState, o domain.Origin) ([]domain.Event, error) {
		return domain.DecideCreateWebhook(
			s, o, "org", "w1", domain.WebhookTarget{URL: "https://hooks.test/"}, d.Seal("w1"),
		)
	})
	return w, d
}

// record changes the webhook as the directory does.
func (w *world) record(
	_ *Deliverer, decide func(domain.WebhooksState, domain.Origin) ([]domain.Event, error),
) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, err := decide(w.webhooks, domain.Origin{At: time.Now()})
	for _, e := range events {
		if err == nil {
			w.webhooks, err = domain.EvolveWebhooks(w.webhooks, e)
		}
	}
	if err != nil {
		panic(err)
	}
	select {
	case w.relist <- struct{}{}:
	default:
	}
}

func (w *world) follow(ctx context.Context, fn func(string, domain.WebhooksState)) error {
	for {
		w.mu.Lock()
		all := w.webhooks
		w.mu.Unlock()
		fn("org", all)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.relist:
		}
	}
}

func (w *world) disable(
	_ context.Context, was domain.Webhook, cause domain.WebhookDisableCause,
) error {
	w.record(nil, func(s domain.WebhooksState, o domain.Origin) ([]domain.Event, error) {
		return domain.DecideDisableWebhook(s, o, was, cause)
	})
	return nil
}

// emit stores n events, of two hubs in turn.
func (w *world) emit(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n {
		at := len(w.events) + 1
		w.events = append(w.events, domain.EncodedEvent{
			Cursor: strconv.Itoa(at), StoredNanos: time.Now().UnixNano(),
			Envelope: fmt.Appendf(
				nil, `{"cursor":"c%d","type":"channel.observed","hub_id":"hub-%d"}`, at, at%2,
			),
		})
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// run delivers until stop is called.
func (w *world) run(t *testing.T, d *Deliverer, held func() bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Follow(ctx) })
	running.Go(func() { _ = d.Serve(ctx, 0, held) })
	return func() { cancel(); running.Wait() }
}

// state returns the webhook and the mails.
func (w *world) state() (domain.Webhook, []domain.WebhookDisableCause) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.webhooks[0], slices.Clone(w.mails)
}

func always() bool { return true }

// cursors returns the cursors of all events that the receiver has taken.
func (w *world) cursors() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.taken {
		all = append(all, r.cursors...)
	}
	return all
}

// RoundTrip implements the receiver.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var content struct {
		Data     []struct{ Cursor, Type string }
		Position string
	}
	if err := json.Unmarshal(body, &content); err != nil {
		return nil, err
	}
	r := received{id: req.Header.Get("Webhook-Id"), position: content.Position}
	for _, part := range req.Header["Webhook-Signature"] {
		r.signatures += 1 + len(slices.DeleteFunc(
			[]rune(part), func(c rune) bool { return c != ' ' },
		))
	}
	for _, e := range content.Data {
		r.types = append(r.types, e.Type)
		if e.Cursor != "" {
			r.cursors = append(r.cursors, e.Cursor)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	status := w.answer(r)
	if status < 300 {
		w.taken = append(w.taken, r)
	}
	answer := httptest.NewRecorder()
	answer.WriteHeader(status)
	return answer.Result(), nil
}

// Get, Put and Delete implement Progress.
func (w *world) Get(context.Context, string) (domain.WebhookProgress, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress, w.revision, nil
}

func (w *world) Put(
	_ context.Context, _ string, p domain.WebhookProgress, revision uint64,
) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if revision != w.revision {
		return 0, fmt.Errorf("revision %d, want %d", revision, w.revision)
	}
	w.progress, w.revision = p, revision+1
	return w.revision, nil
}

func (w *world) Delete(context.Context, string) error { return nil }

// Follow and FollowSince implement Feeds.
func (w *world) Follow(
	_ context.Context, _ string, _ domain.EventFilter, after string,
) (Reader, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, err := strconv.Atoi(after)
	if err != nil || at < w.expired {
		return nil, domain.Errorf(domain.CodeCursorExpired, "after %s", after)
	}
	return &reader{w, at}, nil
}

func (w *world) FollowSince(
	_ context.Context, _ string, _ domain.EventFilter, since time.Time,
) (Reader, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.expired
	for at < len(w.events) && w.events[at].StoredNanos < since.UnixNano() {
		at++
	}
	return &reader{w, at}, nil
}

// reader reads a world's events.
type reader struct {
	w  *world
	at int
}

func (r *reader) Next(_ context.Context, limit int) ([]domain.EncodedEvent, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	events := r.w.events[r.at:min(r.at+limit, len(r.w.events))]
	r.at += len(events)
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
