package consumer

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/httpapi/client"
	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// forwarder starts `hubcloud forward` with a key of the tenant.
func forwarder(t *testing.T, tenant *harness.Tenant, args ...string) *process {
	t.Helper()
	return processOf(t, func() *exec.Cmd {
		cmd := exec.Command(harness.Binary(t), append([]string{"forward"}, args...)...)
		cmd.Env = append(
			os.Environ(), "HUBCLOUD_URL="+tenant.Base, "HUBCLOUD_API_KEY="+tenant.Key,
			"HUBCLOUD_WEBHOOK_SECRET="+otherSecret+","+receiverSecret,
		)
		return cmd
	})
}

// emitScenes makes a hub send scene events numbered from first to last.
func emitScenes(t *testing.T, hub *virtualhub.Hub, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if _, err := hub.Emit(virtualhub.Event{
			Type: "channel.observed", DeviceID: 1,
			Data: map[string]any{
				"key": "scene", "endpoint": 0,
				"value": map[string]any{"scene": n, "attribute": "pressed"},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForwardingOverKills forwards the events of several hubs, one by one, in batches, and in two
// parts, while forwarders and the service are killed and the receiver ends connections. Every event
// arrives. Each hub's events arrive in the order of its log, apart from repeats, and under the same
// ids.
func TestForwardingOverKills(t *testing.T) {
	t.Parallel()
	target := harness.NewTarget(t, "--stream-lifetime", "3s", "--stream-keepalive", "500ms")
	service := target.OwnService()
	tenant := target.Tenant("Forwarding")
	c := clientOf(t, tenant, client.Retry{MaxElapsed: time.Minute, MaxBackoff: time.Second})
	var hubs []*virtualhub.Hub
	var ids []string
	for range 3 {
		hub := target.VirtualHub(tenant, virtualhub.Config{})
		hubs, ids = append(hubs, hub), append(ids, hub.ID())
	}
	r := newReceiver(t)
	dir := t.TempDir()
	var forwarders []*process
	for name, flags := range map[string][]string{
		"/single": nil, "/batch": {"--batch"}, "/first": {"--part", "1/2"},
		"/second": {"--part", "2/2", "--batch"},
	} {
		to := r.URL + name
		if strings.HasPrefix(name, "/first") || strings.HasPrefix(name, "/second") {
			to = r.URL + "/parts"
		}
		forwarders = append(forwarders, forwarder(t, tenant, append([]string{
			"--to", to, "--checkpoint", dir + name, "--oldest",
		}, flags...)...))
	}
	const rounds, each = 8, 15
	for round := range rounds {
		for _, hub := range hubs {
			emitScenes(t, hub, round*each+1, round*each+each)
		}
		harness.AnyMoment(100*time.Millisecond, 700*time.Millisecond)
		switch {
		case round == rounds/2:
			service.Kill()
			service.Begin()
			for _, hub := range hubs {
				harness.Connected(t, hub)
			}
		case round%2 == 0:
			for _, f := range forwarders {
				f.kill()
				f.begin()
			}
		default:
			r.down.Store(true)
			harness.AnyMoment(0, time.Second)
			r.down.Store(false)
		}
	}
	for _, path := range []string{"/single", "/batch", "/parts"} {
		r.await(path, rounds*each, ids...)
		for _, hub := range hubs {
			harness.Stored(t, hub)
			compareForwarded(t, c, hub.ID(), path, r.taken(path), rounds*each)
		}
	}
}

// compareForwarded compares what a receiver took of a hub with the hub's log up to a scene.
func compareForwarded(
	t *testing.T, c *client.Client, hub, path string, all []taken, last int,
) {
	t.Helper()
	var log []string
	for event, err := range c.Events(soon(t), hub, "", client.UntilNewest()) {
		if err != nil && !client.IsGap(err) {
			t.Fatal(err)
		}
		log = append(log, event.Cursor)
		if sceneOf(event) == last {
			break
		}
	}
	var first []string
	idOf := map[string]string{}
	repeats := 0
	for _, one := range all {
		if one.Hub != hub {
			continue
		}
		if !slices.Contains(first, one.Cursor) {
			first = append(first, one.Cursor)
		} else {
			repeats++
		}
		if id := idOf[one.Cursor]; path == "/single" && id != "" && id != one.ID {
			t.Errorf("%s: event %s has the ids %s and %s", path, one.Cursor, id, one.ID)
		}
		idOf[one.Cursor] = one.ID
	}
	t.Logf("%s: %d events of %s, %d repeats", path, len(first), hub, repeats)
	if !slices.Equal(first[:min(len(log), len(first))], log) {
		t.Errorf("%s: got %d events of %s: %v\nwant %d: %v",
			path, len(first), hub, first, len(log), log)
	}
}

// rejecting returns the address of a proxy of a receiver that answers 400 to an event, and counts
// these answers.
func rejecting(t *testing.T, address, cursor string, rejected *atomic.Int32) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Webhook-Id"), "/"+cursor) {
			rejected.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL + "/"
}

// forwardCommand runs `hubcloud forward` against receivers that reject events.
func forwardCommand(t *testing.T, target *harness.Target) {
	tenant := target.Tenant("Forward command")
	c := clientOf(t, tenant, client.Retry{})
	hub := target.VirtualHub(tenant, virtualhub.Config{})
	other := target.VirtualHub(tenant, virtualhub.Config{})
	emitScenes(t, hub, 1, 3)
	emitScenes(t, other, 1, 1)
	harness.Stored(t, hub)
	harness.Stored(t, other)
	var second client.Event
	for event, err := range c.Events(soon(t), hub.ID(), "", client.UntilNewest()) {
		harness.Must(t, err)
		if sceneOf(event) == 2 {
			second = event
		}
	}

	t.Run("skip", func(t *testing.T) {
		t.Parallel()
		r := newReceiver(t)
		var rejected atomic.Int32
		front := rejecting(t, r.Listener.Addr().String(), second.Cursor, &rejected)
		args := []string{
			"--to", front, "--checkpoint", t.TempDir() + "/checkpoint", "--oldest",
			"--type", "channel.*",
		}
		f := forwarder(t, tenant, args...)
		r.await("/", 1, hub.ID(), other.ID())
		streamstest.Eventually(t, "a second attempt", func() bool { return rejected.Load() > 1 })
		f.kill()
		if slices.ContainsFunc(r.taken("/"), func(one taken) bool { return one.Scene == 3 }) {
			t.Errorf("got %v, want no scene 3 before scene 2", r.taken("/"))
		}
		f = forwarder(t, tenant, append(args, "--skip", second.Cursor)...)
		r.await("/", 3, hub.ID())
		_ = f.cmd.Process.Signal(os.Interrupt)
		if err := f.cmd.Wait(); err != nil || !strings.Contains(f.log.String(), "event skipped") {
			t.Errorf("got %v, log %s, want no error and a skipped event", err, f.log.String())
		}
		forwarder(t, tenant, args...) // the checkpoint is behind the skipped event
		emitScenes(t, hub, 4, 4)
		r.await("/", 4, hub.ID())
		for _, one := range r.taken("/") {
			if one.Cursor == second.Cursor || one.Scene == 0 {
				t.Errorf("the receiver took %+v, want no scene 2 and only channels", one)
			}
		}
	})

	t.Run("410", func(t *testing.T) {
		t.Parallel()
		gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
		}))
		t.Cleanup(gone.Close)
		_, errs, code := harness.RunBinary(
			t, "forward", "--url", tenant.Base, "--key", tenant.Key, "--to", gone.URL, "--oldest",
		)
		if code != 3 || !strings.Contains(errs, "410") {
			t.Errorf("got exit code %d, %s, want 3 and the answer 410", code, errs)
		}
	})

	damaged := t.TempDir() + "/damaged"
	harness.Must(t, os.WriteFile(damaged, []byte("hello"), 0o600))
	foreign := t.TempDir() + "/foreign"
	harness.Must(t, os.WriteFile(
		foreign, []byte(`{"hubcloud_forward_checkpoint":1,"position":"AAAA"}`), 0o600,
	))
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no address":         {[]string{"--to", "localhost:9000"}, 2, "--to"},
		"no secret":          {[]string{"--to", "http://x/", "--secret", "x"}, 2, "--secret"},
		"damaged checkpoint": {[]string{"--to", "http://x/", "--checkpoint", damaged}, 2, damaged},
		"foreign checkpoint": {[]string{"--to", "http://x/", "--checkpoint", foreign}, 2, "after"},
		"no key":             {[]string{"--to", "http://x/", "--key", "hc_dev_x"}, 1, "unauthenticated"},
		"part":               {[]string{"--to", "http://x/", "--part", "3/2"}, 2, "--part"},
		"type":               {[]string{"--to", "http://x/", "--type", "*.x"}, 2, "type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs, code := harness.RunBinary(t, append([]string{
				"forward", "--url", tenant.Base, "--key", tenant.Key,
			}, tt.args...)...)
			if code != tt.code || !strings.Contains(errs, tt.want) {
				t.Errorf("got exit code %d, %s, want %d and %q", code, errs, tt.code, tt.want)
			}
		})
	}
}
