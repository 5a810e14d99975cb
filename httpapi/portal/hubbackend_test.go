package portal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

// hubBackend is what the pages of hubs run on: an organization of the test's own in the package's
// shared backend, with a hub that is online, and the session of its owner. Fakes are:
//   - the answers of the hub: tests make it reject, fail and report states that a real hub reports
//     only after a while, such as a jammed lock;
//   - the changes of hubs and labels, which are recorded: a page must not send more fields than the
//     form set;
//   - the hub's log, which is empty: testLive has real logs and streams.
type hubBackend struct {
	*projectionstest.Organization
	portal.Directory
	sessions *signin.Store
	hub      domain.HubID
	// path is the path of the hub's page, below the organization's.
	path string
	// token is the session of the person who sends the requests.
	token string

	devices []domain.Device
	faults  []portal.HubFault
	// reason is the reason of the hub's disconnection.
	reason *string
	// unasked is the error of questions for faults.
	unasked error
	// reported are the channels of devices that need attention, and unreadable the error of reading
	// them. silent are the hubs that do not report.
	reported   []domain.ReportedState
	unreadable error
	// endless makes States return pages without states that are not the last.
	endless bool
	// events are the events of the feed, and chosen is the filter of its last read.
	events []domain.EncodedEvent
	chosen domain.EventFilter
	// asked is the filter of the last request for reported states.
	asked   domain.StateFilter
	silent  map[domain.HubID]time.Time
	fails   error // the hub's answer to everything
	rejects error // the hub's answer to changes
	calls   hubCalls
	codes   doorCodes
}

// hubCalls are the calls that a test's requests led to.
type hubCalls struct {
	sent    []domain.Command
	labeled []domain.LabelDevice
	placed  []domain.UpdateHub
	done    []string
	code    *string
	origin  domain.Origin
}

const formToken = "form-token"

// lockCommand returns the form of a command that locks.
func lockCommand() url.Values {
	return url.Values{
		"key": {"lock"}, "endpoint": {"0"}, "value": {"true"}, "idempotency_key": {"once"},
	}
}

func newHubBackend(t *testing.T) *hubBackend {
	t.Helper()
	shared := projectionstest.Shared()
	owner := fmt.Sprintf("ann@t%d.example.org", backends.Add(1))
	b := &hubBackend{
		Organization: shared.NewOrganization(t, "Acme", owner),
		Directory:    shared.Directory,
		sessions:     signin.New(shared.Conns.Cloud, shared.Buckets.SignIn, nil),
		devices:      hubDevices(),
	}
	b.hub = b.NewHub(t)
	b.path = "/hubs/" + string(b.hub)
	b.signIn(t, owner)
	shared.Env.PutPresence(t, domain.Presence{
		HubID: b.hub, Online: true, Since: time.Now().Add(-time.Hour), PublicIP: "192.0.2.7",
		Firmware: json.RawMessage(`{"version":"2.4.1"}`),
		Network: json.RawMessage(`{"type":"wifi","interface":"wlan0","ip_address":"10.0.0.7",` +
			`"ssid":"Guests","signal_dbm":-61,"metered":false,` +
			`"reported_at":"2026-01-02T03:04:05.000000Z"}`),
	})
	streamstest.Eventually(t, "the hub is online", func() bool {
		hub, err := b.Store.Hub(t.Context(), b.ID, b.hub)
		return err == nil && hub.Status == domain.HubOnline
	})
	return b
}

// signIn begins a session for an address.
func (b *hubBackend) signIn(t *testing.T, email string) {
	t.Helper()
	var err error
	b.token, err = b.sessions.Begin(t.Context(), domain.PortalSession{
		Email: email, FormToken: formToken, CreatedAt: time.Now(),
		ExpiresAt: time.Now().Add(time.Hour),
	})
	streamstest.Must(t, err)
}

// hubDevices returns a lock with a hostile name, which is jammed, and a thermostat with a channel
// of every status.
func hubDevices() []domain.Device {
	unit, observed := "%", "2026-01-02T03:04:05.000000Z"
	wakes := time.Now().Add(time.Hour).UTC().Format(domain.TimeLayout)
	channel := func(key, value, desired string, status domain.ChannelStatus) domain.Channel {
		return domain.Channel{
			Key: key, Kind: key, Readable: true, Writable: true, Available: true,
			Value: json.RawMessage(value), Desired: json.RawMessage(desired),
			ObservedAt: &observed, Status: status,
			Capabilities: json.RawMessage(`{"min":5,"max":30}`),
		}
	}
	return []domain.Device{
		{
			ID: 1, Name: "<script>alert(1)</script>", Manufacturer: "Acme", Model: "L1",
			Channels: []domain.Channel{
				channel("lock", "false", "true", domain.ChannelDiverged),
				{
					Key: "battery", Kind: "battery", Unit: &unit, Available: true,
					Value: json.RawMessage("87"), Status: domain.ChannelSynchronized,
				},
			},
		},
		{ID: 2, Name: "Thermostat", WakesAt: &wakes, Channels: []domain.Channel{
			channel("heating_setpoint", "21.5", "null", domain.ChannelSynchronized),
			channel("mode", `"heat"`, `"eco"`, domain.ChannelPending),
			channel(
				"color", `{"red":255,"green":0,"blue":128,"warm_white":9}`, "null",
				domain.ChannelFailed,
			),
			channel("level", "42", "null", domain.ChannelSynchronized),
			channel("switch", "true", "null", domain.ChannelSynchronized),
		}},
	}
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
) (domain.SentCommand, error) {
	b.calls.sent, b.calls.origin = append(b.calls.sent, c), o
	return domain.SentCommand{}, b.fails
}

func (b *hubBackend) SendAll(
	ctx context.Context, o domain.Origin, all []domain.Command,
) (results []domain.CommandResult) {
	for _, c := range all {
		sent, err := b.Send(ctx, o, c)
		results = append(results, domain.CommandResult{SentCommand: sent, Err: err})
	}
	return results
}

func (b *hubBackend) LabelDevice(
	_ context.Context, o domain.Origin, change domain.LabelDevice,
) (domain.DeviceLabel, error) {
	b.calls.labeled, b.calls.origin = append(b.calls.labeled, change), o
	return domain.DeviceLabel{}, nil
}

func (b *hubBackend) PlaceDevices(
	_ context.Context, o domain.Origin, _ string, devices map[domain.HubID][]int64, room string,
) error {
	b.calls.origin = o
	return b.did(fmt.Sprint(devices, " to ", room))
}

func (b *hubBackend) UpdateHub(
	_ context.Context, o domain.Origin, change domain.UpdateHub,
) (domain.HubState, error) {
	b.calls.placed, b.calls.origin = append(b.calls.placed, change), o
	return domain.HubState{}, nil
}

// History returns the command that the lock has not carried out.
func (b *hubBackend) History(
	context.Context, domain.HubID, time.Time, int,
) ([]domain.CommandRecord, error) {
	return []domain.CommandRecord{{
		OrgID: b.ID, HubID: b.hub, DeviceID: 1, Key: "lock", Value: json.RawMessage("true"),
		At: time.Now(),
	}}, nil
}

func (b *hubBackend) did(what string) error {
	b.calls.done = append(b.calls.done, what)
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
	b.calls.origin = o
	return b.did("reset")
}

func (b *hubBackend) RemoveHub(_ context.Context, o domain.Origin, _ string, _ domain.HubID) error {
	b.calls.origin = o
	return b.did("remove")
}

func (b *hubBackend) OpenPairing(
	_ context.Context, _ domain.HubID, code *string,
) (domain.Window, error) {
	b.calls.code = code
	return domain.Window{Status: domain.WindowOpen, ExpiresIn: 120}, b.did("pairing")
}

func (b *hubBackend) OpenRemoval(context.Context, domain.HubID) (domain.Window, error) {
	return domain.Window{Status: domain.WindowOpen, ExpiresIn: 120}, b.did("removal")
}

func (b *hubBackend) At(context.Context, domain.HubID, time.Time) (string, error) { return "", nil }

func (b *hubBackend) EndCursor(context.Context, domain.HubID) (string, error) { return "", nil }

func (b *hubBackend) Page(context.Context, domain.HubID, string, int) (domain.EventPage, error) {
	return domain.EventPage{Next: "next"}, nil
}

// idleFeed is a feed with the backend's events, to which none are added.
type idleFeed struct{ b *hubBackend }

// Follow rejects all positions but its own.
func (idleFeed) Follow(
	_ context.Context, _ string, _ domain.EventFilter, after string,
) (portal.EventReader, error) {
	if after != "" && after != "position" {
		return nil, domain.Errorf(domain.CodeInvalidRequest, "after: must be a position")
	}
	return idleReader{}, nil
}

func (idleFeed) FollowSince(
	context.Context, string, domain.EventFilter, time.Time,
) (portal.EventReader, error) {
	return idleReader{}, nil
}

func (idleFeed) Since(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func (f idleFeed) Part(
	_ context.Context, _ string, filter domain.EventFilter, after string, _, _ int, _ time.Duration,
) (domain.EventPage, error) {
	since, _ := strconv.ParseInt(after, 10, 64)
	f.b.chosen = filter
	events := slices.DeleteFunc(slices.Clone(f.b.events), func(e domain.EncodedEvent) bool {
		var typed struct{ Type string }
		return json.Unmarshal(e.Envelope, &typed) != nil || e.StoredNanos < since ||
			!filter.HasType(typed.Type)
	})
	return domain.EventPage{Events: events, Next: "position", Scanned: len(events)}, nil
}

type idleReader struct{}

func (idleReader) Next(context.Context, int) ([]domain.EncodedEvent, error) { return nil, nil }
func (idleReader) Ready() <-chan struct{}                                   { return nil }
func (idleReader) Cursor() string                                           { return "position" }
func (idleReader) Close()                                                   {}

// StatesNeedingAttention returns b.reported and b.unreadable.
func (b *hubBackend) StatesNeedingAttention(
	context.Context, string, string, domain.HubID,
) ([]domain.ReportedState, error) {
	return b.reported, b.unreadable
}

// FindDevices returns the devices of b.reported whose names contain text.
func (b *hubBackend) FindDevices(
	_ context.Context, _, text string, _ []string, _ int,
) (found []domain.FoundDevice, err error) {
	for _, state := range b.reported {
		if strings.Contains(*state.Name, text) {
			found = append(found, domain.FoundDevice{
				HubID: state.HubID, DeviceID: state.DeviceID, Name: *state.Name, Room: "Hall door",
				Key: state.Channel.Key, Value: state.Channel.Value,
			})
		}
	}
	return found, b.unreadable
}

// States returns the reported channels of a key, or all, after the position.
func (b *hubBackend) States(
	_ context.Context, _ domain.Reach, filter domain.StateFilter, limit int, after domain.StatePosition,
) (domain.StatesPage, error) {
	var page domain.StatesPage
	b.asked = filter
	if b.endless {
		page.HasMore, page.Next = true, domain.StatePosition{HubID: "hub-1"}
		return page, nil
	}
	for _, state := range b.reported {
		switch {
		case filter.Key != nil && *filter.Key != state.Channel.Key || state.DeviceID <= after.DeviceID:
		case filter.Available != nil && *filter.Available != state.Channel.Available:
		case len(page.Data) == limit:
			page.HasMore, page.Next = true, page.Data[limit-1].Position()
		default:
			page.Data = append(page.Data, state)
		}
	}
	return page, b.unreadable
}

// SilentHubs returns b.silent.
func (b *hubBackend) SilentHubs(context.Context) (map[domain.HubID]time.Time, error) {
	return b.silent, nil
}

// serve returns the portal's routes on a router.
func (b *hubBackend) serve() http.Handler { return handler(b.config()) }

func (b *hubBackend) config() portal.Config {
	return portal.Config{
		SignIn: b.sessions, People: b.Access, ReadModels: b.Store, Directory: b, Hubs: b.Access,
		Devices: b, Commands: b, Labels: b, History: b, Faults: b, Reported: b, PublicURL: public,
		Book: b.Store, Codes: &b.codes, Events: b, Feed: idleFeed{b},
		DisconnectReason: func(domain.HubID) *string { return b.reason },
	}
}

// ask requests a path below the organization's, with the session, and with a form unless form is
// nil.
func (b *hubBackend) ask(method, path string, form url.Values, header ...string) *http.Response {
	var body io.Reader
	if form != nil {
		form.Set("form_token", portal.MaskToken(formToken))
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, public+"/portal/"+b.ID+path, body)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: "hubcloud_session", Value: b.token})
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.serve().ServeHTTP(w, r)
	return w.Result()
}

// page loads a page.
func (b *hubBackend) page(t *testing.T, path string) string {
	t.Helper()
	return read(t, b.ask("GET", path, nil))
}

// want sends a request as ask does, checks the status of the answer, and returns its text.
func (b *hubBackend) want(
	t *testing.T, status int, method, path string, form url.Values, header ...string,
) string {
	t.Helper()
	response := b.ask(method, path, form, header...)
	text := read(t, response)
	if response.StatusCode != status {
		t.Errorf("%s %s: got %d %s, want %d", method, path, response.StatusCode, text, status)
	}
	return text
}

// HubFaults returns b.faults and b.unasked.
func (b *hubBackend) HubFaults(context.Context, domain.HubID) ([]portal.HubFault, error) {
	return b.faults, b.unasked
}
