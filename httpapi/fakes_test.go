package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const (
	orgOne  = "01940000-0000-7000-8000-000000000001"
	orgTwo  = "01940000-0000-7000-8000-000000000002"
	siteOne = "01940000-0000-7000-8000-00000000000a"
	siteTwo = "01940000-0000-7000-8000-00000000000b"
	hubOne  = domain.HubID("hub-7k2m-q4xd-93ta")
	hubTwo  = domain.HubID("hub-aaaa-bbbb-cccc") // orgTwo's
	hubNone = domain.HubID("hub-none-none-none")
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)

// world implements the API's ports in memory: two organizations with one site and one hub each, and
// one event log for all hubs. Tests use it where time must be simulated (testing/synctest), and
// where stores, logs and hubs must fail on request.
type world struct {
	mu    sync.Mutex
	keys  map[string]domain.KeyAccess
	hubs  map[domain.HubID]domain.Hub
	owner map[domain.HubID]string
	sites map[string]domain.Site
	hub   hub

	log     []domain.EncodedEvent
	changed chan struct{}
	reset   bool // the log was reset
	readers int
	parts   int   // parts of pages that were read
	given   int   // events that readers have taken
	closed  bool  // the logs are closed
	fault   error // what every method answers
}

func newWorld() *world {
	ip := "192.0.2.7"
	return &world{
		keys: map[string]domain.KeyAccess{},
		hubs: map[domain.HubID]domain.Hub{
			hubOne: {
				ID: hubOne, SiteID: siteOne, Status: domain.HubOnline, Since: day, PublicIP: &ip,
				AddedAt:  day,
				Firmware: json.RawMessage(`{"version":"2.4.1"}`),
			},
			hubTwo: {
				ID:      hubTwo,
				SiteID:  siteTwo,
				Status:  domain.HubUnknown,
				Since:   day,
				AddedAt: day,
			},
		},
		owner: map[domain.HubID]string{hubOne: orgOne, hubTwo: orgTwo},
		sites: map[string]domain.Site{
			siteOne: {ID: siteOne, Name: "Mill", HubCount: 1, CreatedAt: day},
			siteTwo: {ID: siteTwo, Name: "Quay", HubCount: 1, CreatedAt: day},
		},
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
		ID: key.ID, OrgID: org, Environment: domain.EnvironmentDev, Scopes: scopes,
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

// hubAccess implements Hubs, whose method has the same name as one of ReadModels.
type hubAccess struct{ *world }

func (w hubAccess) Hub(id domain.HubID) (domain.HubAccess, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	org, ok := w.owner[id]
	return domain.HubAccess{OrgID: org}, ok
}

func (w *world) orgOf(site string) string {
	return map[string]string{siteOne: orgOne, siteTwo: orgTwo}[site]
}

func (w *world) Sites(
	_ context.Context, org string, limit int, after string,
) (domain.Page[domain.Site], error) {
	page := domain.Page[domain.Site]{Data: []domain.Site{}}
	for id, s := range w.sites {
		if w.orgOf(id) == org && id > after && len(page.Data) < limit {
			page.Data = append(page.Data, s)
		}
	}
	return page, w.fault
}

func (w *world) Site(_ context.Context, org, site string) (domain.Site, error) {
	if s, ok := w.sites[site]; ok && w.orgOf(site) == org {
		return s, w.fault
	}
	return domain.Site{}, domain.ErrSiteNotFound()
}

func (w *world) Hubs(
	_ context.Context, org string, site *string, limit int, after string,
) (domain.Page[domain.Hub], error) {
	page := domain.Page[domain.Hub]{Data: []domain.Hub{}}
	for id, h := range w.hubs {
		if w.owner[id] == org && string(id) > after && len(page.Data) < limit &&
			(site == nil || *site == h.SiteID) {
			page.Data = append(page.Data, h)
		}
	}
	return page, w.fault
}

func (w *world) Hub(_ context.Context, org string, hub domain.HubID) (domain.Hub, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return domain.Hub{}, w.fault
	}
	if h, ok := w.hubs[hub]; ok && w.owner[hub] == org {
		return h, nil
	}
	return domain.Hub{}, domain.ErrHubNotFound()
}

// remembered implements Idempotency in memory, for one request at a time.
type remembered struct {
	mu      sync.Mutex
	answers map[string]struct{ request, answer string }
}

func (m *remembered) Once(
	ctx context.Context, org, key string, request []byte,
	do func(ctx context.Context, id string) ([]byte, error),
) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.answers[org+key]; ok {
		if known.request != string(request) {
			return nil, domain.Errorf(
				domain.CodeIdempotencyConflict,
				"Idempotency-Key: was used for another request; use a new key",
			)
		}
		return []byte(known.answer), nil
	}
	answer, err := do(ctx, siteOne)
	if err != nil {
		return nil, err
	}
	if m.answers == nil {
		m.answers = map[string]struct{ request, answer string }{}
	}
	m.answers[org+key] = struct{ request, answer string }{string(request), string(answer)}
	return answer, nil
}

func (w *world) CreateSiteWithID(
	_ context.Context, o domain.Origin, org, _, name string,
) (domain.SiteState, error) {
	return domain.SiteState{OrgID: org, ID: siteOne, Name: name, CreatedAt: day}, w.fault
}

func (w *world) RenameSite(
	ctx context.Context, o domain.Origin, org, site, name string,
) (domain.SiteState, error) {
	s, err := w.Site(ctx, org, site)
	if err != nil {
		return domain.SiteState{}, err
	}
	s.Name = name
	w.sites[site] = s
	return domain.SiteState{ID: s.ID, OrgID: org, Name: s.Name, CreatedAt: s.CreatedAt}, nil
}

func (w *world) AddHub(
	_ context.Context, _ domain.Origin, add domain.AddHub,
) (domain.HubState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.orgOf(add.SiteID) != add.OrgID {
		return domain.HubState{}, domain.ErrSiteNotFound()
	}
	h, ok := w.hubs[add.HubID]
	if !ok || w.owner[add.HubID] != add.OrgID {
		return domain.HubState{}, domain.ErrHubNotAddable()
	}
	h.SiteID = add.SiteID
	h.Name = cmp.Or(add.Name, h.Name)
	w.hubs[add.HubID] = h
	return decidedOf(h), nil
}

// decidedOf returns the part of a hub that changes decide.
func decidedOf(h domain.Hub) domain.HubState {
	return domain.HubState{ID: h.ID, Name: h.Name, SiteID: h.SiteID, AddedAt: h.AddedAt}
}

func (w *world) UpdateHub(
	_ context.Context, _ domain.Origin, change domain.UpdateHub,
) (domain.HubState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hubs[change.HubID]
	if change.SetName {
		h.Name = change.Name
	}
	if change.SiteID != nil {
		if w.orgOf(*change.SiteID) != change.OrgID {
			return domain.HubState{}, domain.ErrSiteNotFound()
		}
		h.SiteID = *change.SiteID
	}
	w.hubs[change.HubID] = h
	return decidedOf(h), nil
}

func (w *world) ResetLink(context.Context, domain.Origin, string, domain.HubID) error {
	return w.fault
}

func (w *world) Issue(
	_ context.Context, req protocol.CertificateRequest,
) (protocol.Certificate, error) {
	if req.Secret != "right" {
		return protocol.Certificate{}, domain.Errorf(
			domain.CodeUnauthenticated, "serial or secret is wrong",
		)
	}
	return protocol.Certificate{HubID: string(hubOne), Broker: "mqtts://127.0.0.1:8883"}, nil
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
	to := from
	for size := 0; to < min(len(w.log), from+limit) && (to == from || size+len(w.log[to].Envelope) <= bytes); to++ {
		size += len(w.log[to].Envelope)
	}
	return domain.EventPage{
		Events:  w.log[from:to],
		Next:    fmt.Sprintf("c%d", to),
		HasMore: to < len(w.log),
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
	at, err := w.position(after, len(w.log))
	if err != nil {
		return nil, err
	}
	w.readers++
	return &worldReader{world: w, at: at}, nil
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
		return nil, fmt.Errorf("next: %w", ErrEventsClosed)
	}
	to := r.at
	for size := 0; to < min(len(r.log), r.at+limit); to++ {
		if size += len(r.log[to].Envelope); size > sse.BatchBytes && to > r.at {
			break
		}
	}
	events := r.log[r.at:to]
	r.given += to - r.at
	r.at = to
	return events, nil
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

func (r *worldReader) Cursor() string { return fmt.Sprintf("c%d", r.at) }

func (r *worldReader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers--
}
