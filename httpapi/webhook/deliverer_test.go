package webhook

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// wantAll fails unless the receiver has taken events 1 to n in order, apart from whole repeats.
func (w *world) wantAll(t *testing.T, n int) {
	t.Helper()
	next := 1
	for _, cursor := range w.cursors() {
		at, _ := strconv.Atoi(cursor[1:])
		if at > next {
			t.Fatalf("got event %d, want %d first: %v", at, next, w.cursors())
		}
		next = max(next, at+1)
	}
	if next != n+1 {
		t.Fatalf("got events up to %d, want %d", next-1, n)
	}
}

// What a receiver rejects comes again under the same id, before anything else; a request has at most
// 100 events, and a kill repeats but leaves nothing out.
func TestOrderAndRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t)
		failures, ids := 0, map[string]bool{}
		w.answer = func(r received) int {
			if len(r.types) > 100 {
				t.Errorf("got %d events in a request, want at most 100", len(r.types))
			}
			if failures < 5 {
				failures++
				ids[r.id] = true
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		stop := w.run(t, d, always)
		w.emit(250)
		pass(10 * time.Second)
		if len(w.cursors()) != 0 || len(ids) != 1 {
			t.Errorf("after 10 s: got %v and %d ids, want no success and 1 id", w.cursors(), len(ids))
		}
		pass(time.Minute)
		w.wantAll(t, 250)
		w.emit(1)
		synctest.Wait()
		stored := w.progress // what a kill leaves: the last second is not stored
		stop()
		w.wantAll(t, 251)
		w.mu.Lock()
		w.progress = stored
		w.mu.Unlock()
		w.emit(3)
		stop = w.run(t, d, always)
		pass(2 * time.Second)
		w.wantAll(t, 254)
		if got := w.progress; got.Position != "254" || len(got.Deliveries) == 0 ||
			got.Deliveries[0].Status != 200 || !got.FailingSince.IsZero() {
			t.Errorf("progress: got %+v, want position 254 and a delivery", got)
		}
		stop()
	})
}

// A webhook that fails is disabled with one mail, told of the gap, and goes on when it is enabled.
func TestDisabledAndEnabled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t)
		status := http.StatusBadGateway
		w.answer = func(received) int { return status }
		defer w.run(t, d, always)()
		w.emit(2)
		for range 71 {
			pass(time.Hour)
			w.mu.Lock()
			w.expired = len(w.events)
			for w.expired > 0 &&
				w.events[w.expired-1].StoredNanos > time.Now().Add(-24*time.Hour).UnixNano() {
				w.expired--
			}
			w.mu.Unlock()
			w.emit(1)
		}
		if hook, _ := w.state(); !hook.Enabled() {
			t.Fatal("disabled before 72 hours")
		}
		pass(2 * time.Hour)
		if hook, mails := w.state(); hook.DisabledBy != domain.WebhookFailing || len(mails) != 1 {
			t.Fatalf("got %+v and mails %v, want failing and one", hook, mails)
		}
		status = http.StatusGone
		enable := func(s domain.WebhooksState, o domain.Origin) ([]domain.Event, error) {
			return domain.DecideChangeWebhook(s, o, "w1", domain.WebhookChange{Enabled: new(true)})
		}
		w.record(d, enable)
		pass(time.Minute)
		if hook, mails := w.state(); hook.DisabledBy != domain.WebhookGone || len(mails) != 2 {
			t.Fatalf("after 410: got %+v and mails %v, want gone", hook, mails)
		}
		status = http.StatusOK
		w.record(d, enable)
		pass(time.Minute)
		first := w.taken[0]
		if first.types[0] != domain.EventFeedGap || !slices.Contains(w.cursors(), "c73") ||
			slices.Contains(w.cursors(), "c1") {
			t.Errorf("got %+v, want a gap first, then what is kept: %v", first, w.cursors())
		}
	})
}

// Each secret in use signs; a replay has new ids; nothing is posted without the lease.
func TestChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t)
		var lost atomic.Bool
		defer w.run(t, d, func() bool { return !lost.Load() })()
		synctest.Wait()
		w.emit(1)
		synctest.Wait()
		w.record(d, func(s domain.WebhooksState, o domain.Origin) ([]domain.Event, error) {
			return domain.DecideRotateWebhook(s, o, "w1", d.Seal("w1"), time.Hour)
		})
		synctest.Wait()
		w.emit(1)
		synctest.Wait()
		pass(2 * time.Hour)
		w.emit(1)
		synctest.Wait()
		var signatures []int
		for _, r := range w.taken {
			signatures = append(signatures, r.signatures)
		}
		if !slices.Equal(signatures, []int{1, 2, 1}) {
			t.Errorf("signatures: got %v, want 1, 2 during the overlap, 1", signatures)
		}
		w.record(d, func(s domain.WebhooksState, o domain.Origin) ([]domain.Event, error) {
			return domain.DecideReplayWebhook(s, o, "w1", "2", time.Time{})
		})
		synctest.Wait()
		if last := w.taken[len(w.taken)-1]; len(w.taken) != 4 || last.cursors[0] != "c3" ||
			last.id == w.taken[2].id {
			t.Errorf("replay: got %+v, want c3 again under another id", w.taken)
		}
		lost.Store(true)
		w.emit(1)
		pass(time.Minute)
		if len(w.taken) != 4 {
			t.Errorf("without the lease: got %+v, want no request", w.taken[4:])
		}
	})
}

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1": false, "::1": false, "10.1.2.3": false, "192.168.0.1": false,
		"172.31.255.255": false, "169.254.169.254": false, "fe80::1%eth0": false, "fd00::1": false,
		"0.0.0.0": false, "::": false, "100.64.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "::ffff:127.0.0.1": false, "::7f00:1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "198.18.0.1": false, "ff02::1": false,
		"93.184.216.34": true, "172.32.0.1": true, "2606:2800:220:1::1": true, "100.128.0.1": true,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got public %t, want %t", text, got, want)
		}
	}
	for url, ok := range map[string]bool{
		"https://example.org/x": true, "http://93.184.216.34:8080/": true,
		"http://localhost/": false, "http://LocalHost.:80/": false, "http://127.0.0.1/": false,
		"http://[::ffff:10.0.0.1]/": false, "http://x.localhost/": false, "file:///x": false,
		"https://user@example.org/": false, "https://example.org:65536/": false,
	} {
		if err := checkURL(url, false); (err == nil) != ok {
			t.Errorf("%s: got %v, want accepted %t", url, err, ok)
		}
	}
}

// A name that leads to this machine is not connected to, and no redirect is followed.
func TestGuardAtTheDial(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	for _, private := range []bool{false, true} {
		transport := newTransport(private)
		defer transport.CloseIdleConnections()
		receiver, err := NewReceiver(Config{
			URL: server.URL, Timeout: time.Minute, Transport: transport,
		})
		streamstest.Must(t, err)
		status, err := receiver.Post(t.Context(), Message{ID: "m", Body: []byte(`{}`)})
		var rejection *Rejection
		switch {
		case !private && !errors.Is(err, errForbidden):
			t.Errorf("got %d, %v, want no connection", status, err)
		case private && (status != 307 || !errors.As(err, &rejection) || asked.Load() != 1):
			t.Errorf("got %d, %v after %d requests, want one redirect", status, err, asked.Load())
		}
	}
}
