package portal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/portal/live"
)

const (
	acme       = "01940000-0000-7000-8000-000000000001"
	ownHub     = domain.HubID("hub-7k2m-q4xd-93ta")
	foreignHub = domain.HubID("hub-aaaa-bbbb-cccc")
	formToken  = "form-token"
)

// hubBackend is an organization with one hub that rejects, fails or does not answer when a test
// wants it to, and with fixed data from the hub and from the read models that no real hub reports
// on request. It records what the pages asked the hub and the directory to do.
type hubBackend struct {
	// These pages call no other methods of the embedded interfaces.
	portal.SignIn
	portal.ReadModels
	portal.Directory

	mu       sync.Mutex
	role     domain.Role
	hub      domain.Hub
	devices  []domain.Device
	labels   map[int64]domain.DeviceLabel
	log      []domain.EncodedEvent
	fails    error // the hub's answer to everything
	rejects  error // the hub's answer to changes
	sent     []domain.Command
	labeled  []domain.LabelDevice
	placed   []domain.UpdateHub
	code     *string
	done     []string
	sessions int
	// signedOut is the channel of Ended.
	signedOut chan struct{}
	origin    domain.Origin
}

func newHubBackend() *hubBackend {
	name, room, unit, address := "<script>alert(1)</script>", "\u202eLobby", "%", "192.0.2.7"
	observed := "2026-01-02T03:04:05.000000Z"
	channel := func(key, value, desired string, status domain.ChannelStatus) domain.Channel {
		return domain.Channel{
			Key: key, Kind: key, Readable: true, Writable: true, Available: true,
			Value: json.RawMessage(value), Desired: json.RawMessage(desired),
			ObservedAt: &observed, Status: status,
			Capabilities: json.RawMessage(`{"min":5,"max":30}`),
		}
	}
	return &hubBackend{
		role: domain.RoleOwner, signedOut: make(chan struct{}),
		hub: domain.Hub{
			ID: ownHub, SiteID: "site", Status: domain.HubOnline,
			Since: time.Now().Add(-time.Hour), PublicIP: &address,
			AddedAt:  time.Now().Add(-48 * time.Hour),
			Firmware: json.RawMessage(`{"version":"2.4.1"}`),
			Network: json.RawMessage(
				`{"type":"wifi","interface":"wlan0","ip_address":"10.0.0.7","ssid":"Guests","signal_dbm":-61,"metered":false,"reported_at":"2026-01-02T03:04:05.000000Z"}`,
			),
		},
		devices: []domain.Device{
			{ID: 1, Name: name, Manufacturer: "Acme", Model: "L1", Channels: []domain.Channel{
				channel("lock", "false", "true", domain.ChannelDiverged),
				{
					Key:       "battery",
					Kind:      "battery",
					Unit:      &unit,
					Available: true,
					Value:     json.RawMessage("87"),
					Status:    domain.ChannelSynchronized,
				},
			}},
			{ID: 2, Name: "Thermostat", Channels: []domain.Channel{
				channel(
					"heating_setpoint", "21.5", "null", domain.ChannelSynchronized,
				), channel("mode", `"heat"`, `"eco"`, domain.ChannelPending),
				channel(
					"color", `{"red":255,"green":0,"blue":128,"warm_white":9}`, "null",
					domain.ChannelFailed,
				),
				channel(
					"level", "42", "null", domain.ChannelSynchronized,
				), channel("switch", "true", "null", domain.ChannelSynchronized),
			}},
		},
		labels: map[int64]domain.DeviceLabel{2: {Room: &room}},
	}
}

func (b *hubBackend) Session(
	_ context.Context, token string, _ time.Time,
) (domain.PortalSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions++
	if token != "session" {
		return domain.PortalSession{}, domain.ErrNotSignedIn()
	}
	return domain.PortalSession{
		AccountID: "account",
		Email:     "ann@example.org",
		FormToken: formToken,
	}, nil
}

func (b *hubBackend) Ended(string) (<-chan struct{}, func()) { return b.signedOut, func() {} }

func (b *hubBackend) Memberships(string) []domain.MemberAccess {
	m, _ := b.Membership(acme, "")
	return []domain.MemberAccess{m}
}

func (b *hubBackend) Membership(org, _ string) (domain.MemberAccess, bool) {
	return domain.MemberAccess{
		OrgID:    acme,
		OrgName:  "Acme",
		MemberID: "member",
		Email:    "ann@example.org",
		Role:     b.role,
	}, org == acme
}

func (b *hubBackend) Hub(_ context.Context, org string, hub domain.HubID) (domain.Hub, error) {
	if org != acme || hub != ownHub {
		return domain.Hub{}, domain.ErrHubNotFound()
	}
	return b.hub, nil
}

func (b *hubBackend) Hubs(
	context.Context, string, *string, int, string,
) (domain.Page[domain.Hub], error) {
	return domain.Page[domain.Hub]{Data: []domain.Hub{b.hub}}, nil
}

func (b *hubBackend) Sites(context.Context, string, int, string) (domain.Page[domain.Site], error) {
	return domain.Page[domain.Site]{Data: []domain.Site{{ID: "site", Name: "Mill & Sons"}}}, nil
}

func (b *hubBackend) DeviceLabels(
	context.Context, string, domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return b.labels, nil
}

func (b *hubBackend) List(context.Context, domain.HubID) ([]domain.Device, error) {
	return b.devices, b.fails
}

func (b *hubBackend) Get(_ context.Context, _ domain.HubID, id int64) (domain.Device, error) {
	for _, d := range b.devices {
		if d.ID == id {
			return d, b.fails
		}
	}
	return domain.Device{}, domain.Errorf(domain.CodeNotFound, "no such device")
}

func (b *hubBackend) Send(
	_ context.Context, o domain.Origin, c domain.Command,
) (domain.Channel, error) {
	b.sent, b.origin = append(b.sent, c), o
	return domain.Channel{}, b.fails
}

func (b *hubBackend) LabelDevice(
	_ context.Context, o domain.Origin, change domain.LabelDevice,
) (domain.DeviceLabel, error) {
	b.labeled, b.origin = append(b.labeled, change), o
	return domain.DeviceLabel{}, nil
}

func (b *hubBackend) UpdateHub(
	_ context.Context, o domain.Origin, change domain.UpdateHub,
) (domain.HubState, error) {
	b.placed, b.origin = append(b.placed, change), o
	return domain.HubState{}, nil
}

func (b *hubBackend) did(what string) error {
	b.done = append(b.done, what)
	return cmp.Or(b.rejects, b.fails)
}

func (b *hubBackend) Forget(context.Context, domain.HubID, int64) error { return b.did("forget") }

func (b *hubBackend) ClosePairing(context.Context, domain.HubID) error {
	return b.did("close pairing")
}

func (b *hubBackend) CloseRemoval(context.Context, domain.HubID) error {
	return b.did("close removal")
}
func (b *hubBackend) ResetLink(_ context.Context, o domain.Origin, _ string, _ domain.HubID) error {
	b.origin = o
	return b.did("reset")
}

func (b *hubBackend) OpenPairing(
	_ context.Context, _ domain.HubID, code *string,
) (domain.Window, error) {
	b.code = code
	return domain.Window{Status: domain.WindowOpen, ExpiresIn: 120}, b.did("pairing")
}

func (b *hubBackend) OpenRemoval(context.Context, domain.HubID) (domain.Window, error) {
	return domain.Window{Status: domain.WindowOpen, ExpiresIn: 120}, b.did("removal")
}

func (b *hubBackend) At(context.Context, domain.HubID, time.Time) (string, error) { return "", nil }

func (b *hubBackend) Page(context.Context, domain.HubID, string, int) (domain.EventPage, error) {
	return domain.EventPage{Events: b.log, Next: "next"}, nil
}

func (b *hubBackend) Group() live.EventGroup { return &idleGroup{make(chan struct{})} }

// idleGroup is an event group without events.
type idleGroup struct{ ready chan struct{} }

func (*idleGroup) Follow(context.Context, domain.HubID, string) error { return nil }
func (*idleGroup) Leave(domain.HubID)                                 {}
func (*idleGroup) Next(context.Context, int) (domain.HubID, []domain.EncodedEvent, error) {
	return "", nil, nil
}
func (q *idleGroup) Ready() <-chan struct{}   { return q.ready }
func (*idleGroup) Cursor(domain.HubID) string { return "position" }
func (*idleGroup) Close()                     {}

// owners implements portal.Owners.
type owners struct{}

func (owners) Hub(id domain.HubID) (domain.HubAccess, bool) {
	org := map[domain.HubID]string{ownHub: acme, foreignHub: "other"}[id]
	return domain.HubAccess{OrgID: org}, org != ""
}

// serve returns the portal's routes on a router.
func (b *hubBackend) serve() http.Handler {
	p := portal.New(portal.Config{
		SignIn: b, People: b, ReadModels: b, Directory: b, Owners: owners{}, Devices: b,
		Commands: b, Labels: b, PublicURL: "http://localhost:8080",
		Live: live.New(
			live.Config{
				ReadModels:       b,
				Devices:          b,
				Events:           b,
				DisconnectReason: func(domain.HubID) *string { return nil },
			},
		),
	})
	mux := chi.NewRouter()
	for _, route := range p.Routes() {
		mux.MethodFunc(route.Method, route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			route.Handle(
				w,
				r,
				portal.RequestInfo{
					RequestID: "01M7YFSWB1B2J5HN6GSRPC9BZB",
					At:        time.Now(),
					Network:   netip.MustParsePrefix("192.0.2.0/32"),
				},
			)
		})
	}
	return mux
}

// ask sends a request with a session, and with a form unless form is nil.
func (b *hubBackend) ask(method, path string, form url.Values, header ...string) *http.Response {
	var body io.Reader
	if form != nil {
		form.Set("form_token", formToken)
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://localhost:8080/portal/"+acme+path, body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: "hubcloud_session", Value: "session"})
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	w := httptest.NewRecorder()
	b.serve().ServeHTTP(w, r)
	return w.Result()
}
