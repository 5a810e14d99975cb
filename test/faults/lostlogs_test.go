package faults

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestDamagedStreams damages every stream of an installation as a crash does, and one hub log in
// worse ways. Regression: a crash between two writes of the broker left a stream without its
// checksum; the service then answered 200 with an empty page and 410 to every cursor until the hub
// connected, and again after every restart. All events, lists and keys must survive.
func TestDamagedStreams(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Damaged")
	var hubs []*harness.RawHub
	for range 3 {
		hub := adopted(t, s, tenant)
		hub.Hello("log-1", 1, 50)
		hub.WaitAck("log-1", 0)
		hub.EventsFrom("log-1", 1, 50)
		hub.WaitAck("log-1", 50)
		hub.Disconnect()
		hubs = append(hubs, hub)
	}
	for _, hub := range hubs {
		tenant.Await(
			hub.ID, "", "the hub is offline",
			func(e harness.Event) bool { return e.Type == "hub.disconnected" },
		)
	}
	streamstest.EventuallyWithin(t, recovery, "every hub is listed as offline", func() bool {
		list := tenant.Must(http.MethodGet, "/hubs", nil, http.StatusOK).Body
		return !strings.Contains(string(list), `"online"`)
	})
	read := func() string {
		var text strings.Builder
		for _, path := range []string{"/sites", "/hubs", "/members", "/invitations"} {
			text.Write(tenant.Must(http.MethodGet, path, nil, http.StatusOK).Body)
		}
		for _, hub := range hubs {
			for _, e := range tenant.AllEvents(hub.ID, "") {
				text.WriteString(e.Cursor + string(e.Data))
			}
		}
		return text.String()
	}
	want, cursor := read(), tenant.Events(hubs[0].ID, "", 10, 0).NextCursor
	stream := func(hub *harness.RawHub) string { return streams.HubStream(domain.HubID(hub.ID)) }

	// damage takes the checksum of one stream, makes that of the next one wrong, and takes a whole hub
	// log, which is written again from the journal, and the configuration of another one.
	found := 0
	damage := func(sum string) error {
		folder := filepath.Dir(sum)
		found++
		switch {
		case filepath.Base(folder) == stream(hubs[0]):
			return errors.Join(
				os.WriteFile(filepath.Join(folder, "meta.inf"), nil, 0o600), os.Remove(sum),
			)
		case filepath.Base(folder) == stream(hubs[1]):
			return os.RemoveAll(folder)
		case found%2 == 0:
			return os.Remove(sum)
		}
		return os.WriteFile(sum, []byte("0000000000000000"), 0o600)
	}
	s.Kill()
	for _, pattern := range []string{
		"*/streams/*", "*/streams/*/obs/*", "CLOUD/streams/*", "CLOUD/streams/*/obs/*",
	} {
		store := filepath.Join(s.Dir, "nats", "jetstream")
		if strings.HasPrefix(pattern, "CLOUD") {
			store = filepath.Join(s.Dir, "nats", "durable", "jetstream")
		}
		sums, err := filepath.Glob(filepath.Join(store, filepath.FromSlash(pattern), "meta.sum"))
		harness.Must(t, err)
		for _, sum := range sums {
			harness.Must(t, damage(sum))
		}
	}
	if found < 15 {
		t.Fatalf("got %d checksums, want at least 15", found)
	}
	s.Begin()
	if got := read(); got != want {
		t.Errorf("answers of the API: got\n%s\nwant\n%s", got, want)
	}
	tenant.Must(http.MethodGet, "/hubs/"+hubs[0].ID+"/events?after="+cursor, nil, http.StatusOK)
}
