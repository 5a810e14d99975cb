package portal_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/streamstest"
)

// state returns a channel of a device that reported a value an hour ago.
func (b *hubBackend) state(device int64, name, key, value string) domain.ReportedState {
	at := time.Now().Add(-time.Hour).UTC()
	observed := domain.FormatTime(at)
	return domain.ReportedState{
		HubID: b.hub, SiteID: b.SiteID, DeviceID: device, Name: &name, ChangedAt: &at,
		Channel: domain.Channel{
			Key: key, Kind: key, Value: []byte(value), ObservedAt: &observed, Available: true,
			Status: domain.ChannelSynchronized,
		},
	}
}

// What needs attention stands on the dashboard and on the pages of the site and the hub, with its
// place, since when and what to do. The title has the organization's counts.
func TestAttention(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.reported = []domain.ReportedState{
		b.state(3, "Landing <alarm>", "smoke", "true"), b.state(4, "Door", "battery", "3"),
	}
	for path, title := range map[string]string{
		"": "<title>(1 alarm, 1 warning) ", "/sites/" + b.SiteID: "Needs attention at this site",
		b.path: "Needs attention at this hub",
	} {
		page := b.page(t, path)
		checkPage(t, page)
		has(
			t, page, title, ">1 alarm, 1 warning</span>", "Smoke detected",
			"call the fire brigade", "Landing &lt;alarm&gt;", "Low battery (3 %)",
			"60 minutes ago", "Mark as seen",
			`href="`+strings.Repeat("../", strings.Count(path, "/")),
		)
		if strings.Index(page, "Smoke") > strings.Index(page, "Low battery") {
			t.Errorf("%q: the warning is before the alarm", path)
		}
	}
	for _, query := range []string{"", "?hub=" + string(b.hub), "?site=" + b.SiteID} {
		if part := b.page(t, "/attention"+query); !strings.Contains(
			part, `data-counts="1 alarm, 1 warning"`,
		) || strings.Contains(part, "<html") {
			t.Errorf("part %q: got %s, want the list alone", query, part)
		}
	}
	b.want(t, http.StatusNotFound, "GET", "/attention?hub=hub-none-none-none", nil)
}

// A seen condition steps back and keeps who has seen it; when it begins again, it is new.
func TestSeeCondition(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	smoke := b.state(3, "Landing", "smoke", "true")
	b.reported = []domain.ReportedState{smoke}
	form := url.Values{
		"hub": {string(b.hub)}, "condition": {"smoke/3/smoke/0"},
		"since": {smoke.ChangedAt.Format(time.RFC3339Nano)}, "from": {"hub"},
	}
	response := b.ask("POST", "/attention/seen", form)
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther ||
		!strings.HasSuffix(to, b.path) {
		t.Fatalf("got %d to %q, want the hub's page", response.StatusCode, to)
	}
	page := b.page(t, "")
	if !strings.Contains(page, "Seen by <bdi>"+b.Owner.Email) ||
		!strings.Contains(page, "Nothing new needs attention.") || strings.Contains(page, "<title>(") {
		t.Errorf("got %s, want the condition among those seen by the owner", page)
	}
	form.Set("undo", "1")
	b.want(t, 303, "POST", "/attention/seen", form)
	page = b.page(t, "")
	lacks(t, has(t, page, " data-life>"), "Seen by")
	form.Del("undo")
	b.ask("POST", "/attention/seen", form)
	again := smoke.ChangedAt.Add(time.Minute)
	b.reported[0].ChangedAt = &again
	has(t, b.page(t, ""), "<title>(1 alarm) ")
	for name, change := range map[string][2]string{
		"a hub of nobody": {"hub", "hub-none-none-none"}, "no hub": {"hub", "x"},
		"no time": {"since", "x"}, "no condition": {"condition", ""},
	} {
		form := url.Values{
			"hub": form["hub"], "condition": form["condition"], "since": form["since"],
		}
		form.Set(change[0], change[1])
		if response := b.ask("POST", "/attention/seen", form); response.StatusCode < 400 ||
			response.StatusCode >= 500 {
			t.Errorf("%s: got %d, want a rejection", name, response.StatusCode)
		}
	}
}

// A page without the reported states still shows hubs, and says that devices are missing. Hubs that
// are silent are warnings.
func TestAttentionWithoutStates(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.unreadable = errors.New("the database is away")
	b.silent = map[domain.HubID]time.Time{b.hub: time.Now().Add(-time.Hour)}
	page := b.page(t, "")
	lacks(
		t,
		has(t, page, "cannot be read at the moment", "Hub does not report", "<title>(1 warning) "),
		"database", "Nothing needs attention",
	)
}

// Many conditions of one kind at one site are one entry, which can be marked as seen at once: a
// restart of the service or of a provider was hundreds of red entries. The same number is in the
// title, the heading, the list and the row of the site.
func TestManyConditions(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	for i := range int64(300) {
		b.reported = append(b.reported, b.state(i, fmt.Sprint("Sensor ", i), "leak", "true"))
	}
	b.reported = append(b.reported, b.state(900, "Landing", "smoke", "true"))
	page := b.page(t, "")
	if rows := strings.Count(page, "data-condition="); rows != 2 ||
		!strings.Contains(page, "<title>(2 alarms) ") || !strings.Contains(page, ">2 alarms</span>") ||
		!strings.Contains(page, `data-alarms="2"`) || !strings.Contains(page, "300 devices") ||
		!strings.Contains(page, "250 more.") || !strings.Contains(page, "Mark all as seen") {
		t.Errorf("got %d rows, want 2 and what the second has: %s", rows, page)
	}
	has(t, b.page(t, "/sites"), `sites/`+b.SiteID+`" aria-label="2 alarms">2</a></td>`)
	newest := b.reported[0].ChangedAt.Add(time.Minute)
	b.reported[0].ChangedAt = &newest // began after the member's page was made
	form := url.Values{
		"kind": {"leak"}, "site": {b.SiteID},
		"since": {b.reported[299].ChangedAt.Format(time.RFC3339Nano)},
	}
	b.want(t, 303, "POST", "/attention/seen", form)
	page = b.page(t, "")
	has(t, page, "<title>(2 alarms) ", "299 devices", "/devices/0\"><bdi>Sensor 0</bdi>")
}

// Hubs that were online when the service stopped are reconnecting after its start, and no alarms,
// until the time is over. A hub that has lost its connection is one.
func TestReconnectingHubs(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	for reason, want := range map[string][]string{
		domain.ReasonServerShutdown: {
			"Nothing needs attention", ">reconnecting</span>", "Reconnecting after a restart of the service: 1 hub.",
		},
		"stale connection": {"<title>(1 alarm) ", ">offline</span>", "Hub offline"},
	} {
		b.reason = &reason
		projectionstest.Shared().Env.PutPresence(t, domain.Presence{
			HubID: b.hub, Since: time.Now().UTC(), Reason: &reason,
		})
		streamstest.Eventually(t, fmt.Sprintf("%s: the page has %q", reason, want), func() bool {
			page := b.page(t, "")
			return !slices.ContainsFunc(want, func(text string) bool {
				return !strings.Contains(page, text)
			})
		})
	}
}
