package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/response"
	"hubcloud/hubbridge/protocol"
	keyindex "hubcloud/projections/access"
	"hubcloud/projections/projectionstest"
	"hubcloud/projections/readmodel"
)

func TestMain(m *testing.M) { projectionstest.Main(m) }

const (
	orgOne  = "01940000-0000-7000-8000-000000000001"
	orgTwo  = "01940000-0000-7000-8000-000000000002"
	siteOne = "01940000-0000-7000-8000-00000000000a"
	siteTwo = "01940000-0000-7000-8000-00000000000b"
	hubOne  = domain.HubID("hub-7k2m-q4xd-93ta")
	hubTwo  = domain.HubID("hub-aaaa-bbbb-cccc") // orgTwo's
	hubNone = domain.HubID("hub-none-none-none")

	memberOwner   = "01940000-0000-7000-8000-0000000000c1"
	memberAdmin   = "01940000-0000-7000-8000-0000000000c2"
	memberForeign = "01940000-0000-7000-8000-0000000000c3"
	invitationOne = "01940000-0000-7000-8000-0000000000d1"
	webhookOne    = "01940000-0000-7000-8000-0000000000e1"
	nowhere       = "01940000-0000-7000-8000-0000000000ff"

	owner = "ann@example.org" // of every organization of startReal
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)

// world has what real parts cannot show: a clock, hubs that misbehave, event logs that fail, end or
// have exactly the given bytes, and keys and hub access that work in a bubble of testing/synctest.
// It has one event log for all hubs. Of the read models and the directory it has only what such
// tests need; startReal serves the real ones.
type world struct {
	ReadModels
	Directory

	mu    sync.Mutex
	keys  map[string]domain.KeyAccess
	owner map[domain.HubID]string
	hub   hub

	attention []portal.Attention

	log     []domain.EncodedEvent
	changed chan struct{}
	reset   bool // the log was reset
	readers int
	parts   int   // parts of pages that were read
	closed  bool  // the logs are closed
	fault   error // what reads and enrolment answer
	seen    []domain.FeedReader
	past    []domain.PastChannel // what StateAt answers
}

func newWorld() *world {
	return &world{
		keys:    map[string]domain.KeyAccess{},
		owner:   map[domain.HubID]string{hubOne: orgOne, hubTwo: orgTwo},
		hub:     newHub(),
		changed: make(chan struct{}),
	}
}

// addKey creates a key; different seeds give different keys.
func (w *world) addKey(
	org string, seed byte, scopes ...domain.Scope,
) (bearer string, revoke func()) {
	var entropy [domain.KeyEntropy]byte
	for i := range entropy {
		entropy[i] = seed
	}
	key := domain.NewKey(domain.EnvironmentDev, entropy)
	revoked := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key.ID] = domain.KeyAccess{
		ID: key.ID, Reach: domain.Reach{OrgID: org}, Environment: domain.EnvironmentDev, Scopes: scopes,
		SecretHash: key.SecretHash(), Revoked: revoked,
	}
	return "Bearer " + key.Reveal(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.keys, key.ID)
		close(revoked)
	}
}

func (w *world) Key(id string) (domain.KeyAccess, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.keys[id]
	return k, ok
}

// noAudit implements Audit without a record.
type noAudit struct{ Audit }

func (noAudit) Activity(
	context.Context, string, int, uint64,
) (page domain.Page[domain.Activity], err error) {
	return page, nil
}

func (noAudit) ActivityAfter(
	context.Context, string, int, uint64, time.Time,
) (page domain.Page[domain.Activity], err error) {
	return page, nil
}

func (noAudit) ActivityChanged(string) <-chan struct{} { return nil }
func (noAudit) AwaitActivity(context.Context) error    { return nil }

// realAudit implements Audit as the service does.
type realAudit struct {
	*readmodel.Store
	*keyindex.Index
}

func (a realAudit) AwaitActivity(ctx context.Context) error {
	return a.Store.WaitFor(ctx, a.Applied())
}

// hubAccess implements Hubs, whose method has the same name as one of ReadModels.
type hubAccess struct{ *world }

func (w hubAccess) Hub(id domain.HubID) (domain.HubAccess, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	org, ok := w.owner[id]
	return domain.HubAccess{OrgID: org}, ok
}

func (w *world) Sites(context.Context, domain.Reach, int, string) (domain.Page[domain.Site], error) {
	return domain.Page[domain.Site]{}, w.fault
}

func (w *world) Attention(
	context.Context, domain.Reach, string, domain.HubID, portal.RequestInfo,
) ([]portal.Attention, error) {
	return w.attention, nil
}

func (w *world) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return nil, w.fault
}

// StateAt returns w.past.
func (w *world) StateAt(
	_ context.Context, _ string, _ domain.HubID, at time.Time,
) (domain.PastHubState, error) {
	return domain.PastHubState{At: at, Channels: w.past}, w.fault
}

func (w *world) CreateSiteWithID(
	_ context.Context, _ domain.Origin, org, _, name string,
) (domain.SiteState, error) {
	return domain.SiteState{OrgID: org, ID: siteOne, Name: name, CreatedAt: day}, nil
}

func (w *world) Issue(
	_ context.Context, req protocol.CertificateRequest,
) (protocol.Certificate, error) {
	if req.Secret != "right" {
		return protocol.Certificate{}, domain.Errorf(
			domain.CodeUnauthenticated, "serial or secret is wrong",
		)
	}
	return protocol.Certificate{
		HubID: req.Serial, Certificate: "x", CA: "x", Broker: "mqtts://127.0.0.1:8883",
		ExpiresAt: domain.FormatTime(day),
	}, w.fault
}

// emit appends n events of about size bytes to the log.
func (w *world) emit(n, size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range n {
		w.log = append(w.log, encodedEvent(uint64(len(w.log)+1), size))
	}
	w.wake()
}

// give makes a hub that of another organization, without ending the readers of its log.
func (w *world) give(hub domain.HubID, org string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owner[hub] = org
}

func (w *world) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// resetLog ends every reader of the log, like the reset of a hub.
func (w *world) resetLog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reset = true
	w.wake()
}

// closeLogs ends every reader, like a stop of the service.
func (w *world) closeLogs() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.wake()
}

func encodedEvent(seq uint64, size int) domain.EncodedEvent {
	cursor := fmt.Sprintf("c%d", seq)
	envelope := fmt.Sprintf(
		`{"cursor":%q,"type":"channel.observed","data":{"x":%q}}`, cursor,
		strings.Repeat("x", size),
	)
	return domain.EncodedEvent{
		Seq: seq, Cursor: cursor, Envelope: []byte(envelope),
		Frame: fmt.Appendf(nil, "id: %s\nevent: channel.observed\ndata: %s\n\n", cursor, envelope),
	}
}

func (w *world) position(after string, otherwise int) (int, error) {
	if after == "" {
		return otherwise, nil
	}
	if after == "old" {
		return 0, domain.Errorf(domain.CodeCursorExpired, "after: is older than the log")
	}
	n, err := strconv.Atoi(strings.TrimPrefix(after, "c"))
	if err != nil || n < 0 || n > len(w.log) {
		return 0, domain.Errorf(domain.CodeInvalidRequest, "after: is no cursor")
	}
	return n, nil
}

func (w *world) page(after string, limit, bytes int) (domain.EventPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return domain.EventPage{}, w.fault
	}
	w.parts++
	from, err := w.position(after, 0)
	if err != nil {
		return domain.EventPage{}, err
	}
	to, end := from, min(len(w.log), from+limit)
	for size := 0; to < end && (to == from || size+len(w.log[to].Envelope) <= bytes); to++ {
		size += len(w.log[to].Envelope)
	}
	return domain.EventPage{
		Events:  w.log[from:to],
		Next:    fmt.Sprintf("c%d", to),
		HasMore: to < len(w.log),
		Lag:     domain.FeedLag{Behind: uint64(len(w.log) - to), At: day},
	}, nil
}

func (w *world) Part(
	ctx context.Context, _ domain.HubID, after string, limit, bytes int, wait time.Duration,
) (domain.EventPage, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		page, err := w.page(after, limit, bytes)
		if err != nil || len(page.Events) > 0 || wait == 0 {
			return page, err
		}
		select {
		case <-changed:
		case <-timer.C:
			return page, nil
		case <-ctx.Done():
			return page, nil
		}
	}
}

func (w *world) Follow(_ context.Context, _ domain.HubID, after string) (EventReader, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return nil, w.fault
	}
	at, err := w.position(after, len(w.log))
	if err != nil {
		return nil, err
	}
	w.readers++
	return &worldReader{world: w, at: at}, nil
}

// Since returns the beginning of the log for times before day, and its end for later ones.
func (w *world) Since(_ context.Context, _ domain.HubID, t time.Time) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Before(day) {
		return "c0", w.fault
	}
	return fmt.Sprintf("c%d", len(w.log)), w.fault
}

func (w *world) Last(_ context.Context, _ domain.HubID, n int) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("c%d", max(len(w.log)-n, 0)), w.fault
}

// worldFeed is a world whose log is the feed of its organization.
type worldFeed struct{ *world }

func (w worldFeed) Part(
	ctx context.Context, _ domain.Reach, _ domain.EventFilter, after string, limit, bytes int,
	wait time.Duration,
) (domain.EventPage, error) {
	return w.world.Part(ctx, "", after, limit, bytes, wait)
}

func (w worldFeed) Follow(
	ctx context.Context, _ domain.Reach, _ domain.EventFilter, after string,
) (EventReader, error) {
	return w.world.Follow(ctx, "", after)
}

func (worldFeed) StatesPosition(context.Context, string) (string, error) {
	return "a position of the feed", nil
}

func (w worldFeed) Since(t time.Time) string {
	at, _ := w.world.Since(context.Background(), "", t)
	return at
}

func (w worldFeed) Last(
	ctx context.Context, _ domain.Reach, _ domain.EventFilter, n int,
) (string, error) {
	return w.world.Last(ctx, "", n)
}

type worldReader struct {
	*world
	at int
}

func (r *worldReader) Next(_ context.Context, limit int) ([]domain.EncodedEvent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reset {
		return nil, domain.Errorf(domain.CodeCursorExpired, "the log was reset")
	}
	if r.closed {
		return nil, fmt.Errorf("next: %w", domain.ErrEventsClosed)
	}
	to := r.at
	for size := 0; to < min(len(r.log), r.at+limit); to++ {
		if size += len(r.log[to].Envelope); size > response.BatchBytes && to > r.at {
			break
		}
	}
	events := r.log[r.at:to]
	r.at = to
	return events, nil
}

func (r *worldReader) CaughtUp(context.Context) (func() bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := len(r.log)
	return func() bool { return r.at >= end }, nil
}

func (r *worldReader) Ready() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reset || r.closed || r.at < len(r.log) {
		already := make(chan struct{})
		close(already)
		return already
	}
	return r.changed
}

func (r *worldReader) Lag(context.Context) domain.FeedLag {
	r.mu.Lock()
	defer r.mu.Unlock()
	return domain.FeedLag{Behind: uint64(len(r.log) - r.at), At: day}
}

func (r *worldReader) Cursor() string { return fmt.Sprintf("c%d", r.at) }

func (r *worldReader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers--
}

// Saw and Page implement FeedReaders: a world lists what it saw of any organization.
func (w *world) Saw(_ string, id domain.FeedReaderID, position string, lag domain.FeedLag) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, domain.FeedReader{
		FeedReaderID: id, Position: position, At: lag.At, Behind: &lag.Behind, LastSeen: day,
	})
}

func (w *world) Page(
	_ context.Context, _ string, has func(domain.FeedReaderID) bool, _ int, _ *domain.FeedReaderID,
) (domain.Page[domain.FeedReader], error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := slices.DeleteFunc(slices.Clone(w.seen), func(r domain.FeedReader) bool {
		return !has(r.FeedReaderID)
	})
	return domain.Page[domain.FeedReader]{Data: seen}, w.fault
}
