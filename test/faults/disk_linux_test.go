package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

var (
	fills   = flag.Int("fills", 1, "how often a test fills the disk")
	fillFor = flag.Duration("fill-for", 3*time.Second, "how long the disk stays full each time")
)

const (
	// diskSize has space for the database, its log, and the streams of a test.
	diskSize = 420 << 20
	// recovery is how long the service may take to recover after disk space was freed.
	recovery = 30 * time.Second
)

// TestFullDisk fills the disk to its last block while hubs send, clients read and organizations
// write. Regression: the service answered all changes with 500, acknowledged no hub and held no
// shard until it was restarted. Once space is free again everything must work without a restart,
// and nothing acknowledged is lost or duplicated.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const hubs, writers = 3, 2
	dir := streamstest.SmallDisk(t, diskSize)
	harness.Install(t, dir)
	s := harness.StartIn(t, dir, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Disk")
	senders, followers := make([]*sender, hubs), make([]*follower, hubs)
	for i := range hubs {
		hub := adopted(t, s, tenant)
		hub.Disconnect()
		senders[i] = &sender{hub: hub, pace: 50 * time.Millisecond}
		followers[i] = &follower{client: tenant.Client, hub: hub.ID, unavailable: true}
	}
	organizations := make([]*writer, writers)
	for i := range organizations {
		organizations[i] = &writer{
			Tenant:  harness.NewTenant(t, s, fmt.Sprintf("Disk writer %d", i)),
			t:       t,
			invited: map[string]bool{},
		}
	}
	stopSending, stopReading := make(chan struct{}), make(chan struct{})
	var sending, reading sync.WaitGroup
	for i := range hubs {
		sending.Go(func() { senders[i].run(stopSending) })
		reading.Go(func() { followers[i].run(stopReading) })
	}
	for _, w := range organizations {
		sending.Go(func() { w.run(stopSending) })
	}
	for round := range *fills {
		harness.AnyMoment(500*time.Millisecond, 1500*time.Millisecond)
		empty := streamstest.FillDisk(t, dir)
		harness.Elapse(*fillFor)
		empty()
		began := time.Now()
		within := func() time.Duration { return max(time.Second, recovery-time.Since(began)) }
		site := fmt.Sprintf("Round %d", round)
		streamstest.EventuallyWithin(t, within(), "a change succeeds again", func() bool {
			answer, err := tenant.Do(http.MethodPost, "/sites", map[string]string{"name": site})
			return err == nil && answer.Status == http.StatusCreated
		})
		changed := time.Since(began)
		for _, h := range senders {
			before := h.progress.Load()
			streamstest.EventuallyWithin(
				t, within(), "events of "+h.hub.ID+" are stored again", func() bool {
					return h.progress.Load() > before
				},
			)
			streamstest.EventuallyWithin(t, within(), h.hub.ID+" is online", func() bool {
				answer, err := tenant.Do(http.MethodGet, "/hubs/"+h.hub.ID, nil)
				var got struct{ Connection struct{ Status string } }
				return err == nil && answer.Status == http.StatusOK &&
					json.Unmarshal(answer.Body, &got) == nil && got.Connection.Status == "online"
			})
		}
		streamstest.EventuallyWithin(t, within(), "the service is ready", func() bool {
			status, ready := readiness(t, s)
			return status == http.StatusOK && ready.Ready && !ready.Degraded
		})
		t.Logf(
			"round %d: changes after %v, everything after %v", round,
			changed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond),
		)
	}
	close(stopSending)
	sending.Wait()
	for i, h := range senders {
		// the last event of an offline hub is stored
		awaitOffline(t, tenant, h.hub.ID)
		last := numbersOf(t, h.hub.ID+" stored", tenant.AllEvents(h.hub.ID, ""))
		if h.acked == 0 || last < h.acked {
			t.Errorf("hub %s: acknowledged through %d, stored through %d", h.hub.ID, h.acked, last)
		}
		t.Logf("hub %d: acknowledged through %d, stored through %d", i, h.acked, last)
	}
	close(stopReading)
	reading.Wait()
	for i, h := range senders {
		same(t, h.hub.ID+", by page", followers[i].got, tenant.AllEvents(h.hub.ID, ""))
	}
	for i, w := range organizations {
		if w.written == 0 {
			t.Errorf("writer %d: got no successful write", i)
		}
		w.check()
		t.Logf("writer %d: %d written; failed: %v", i, w.written, w.failed)
		if n := w.failed["500 internal_error"]; n > 0 {
			t.Errorf("writer %d: got 500 %d times, want none", i, n)
		}
	}
}

// TestDiskReserve tests the disk reserve. Regression: the service wrote until the disk was full.
// Below the reserve the service must reject events, changes and commands, report why, keep serving
// reads, and accept writes again once space is free. On a full disk it must wait to start.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	dir := streamstest.SmallDisk(t, diskSize)
	harness.Install(t, dir)
	s := harness.StartIn(t, dir, "--rate", "100000", "--burst", "100000", "--disk-reserve", "64MiB")
	tenant := harness.NewTenant(t, s, "Reserve")
	hub := adopted(t, s, tenant)
	hub.OnRequest(func(harness.Request) harness.Response {
		lock := map[string]any{
			"key": "lock", "endpoint": 0, "kind": "lock", "unit": nil, "readable": true,
			"writable": true, "capabilities": map[string]any{}, "available": true,
			"value": true, "observed_at": "2026-01-02T03:04:05.123456Z", "desired": nil,
			"desired_at": nil, "status": "synchronized",
		}
		device := map[string]any{
			"id":           1,
			"name":         "Lock",
			"manufacturer": "M",
			"model":        "X",
			"channels":     []any{lock},
		}
		return harness.Response{Result: map[string]any{"device": device}}
	})
	hub.Hello("log-1", 1, 3)
	hub.WaitAck("log-1", 0)
	hub.EventsFrom("log-1", 1, 3)
	hub.WaitAck("log-1", 3)
	head := tenant.Head(hub.ID)

	// Leave 32 MiB free.
	var disk syscall.Statfs_t
	harness.Must(t, syscall.Statfs(dir, &disk))
	other := filepath.Join(dir, "of-another-program")
	harness.Must(t, os.WriteFile(
		other, make([]byte, int64(disk.Bavail)*disk.Bsize-32<<20), 0o600,
	))
	var ready readinessAnswer
	streamstest.Eventually(t, "/readyz reports degraded", func() bool {
		_, ready = readiness(t, s)
		return ready.Degraded
	})
	if !ready.Ready || ready.component("disk").OK ||
		!strings.Contains(ready.component("disk").Detail, "64 MiB") {
		t.Errorf(
			"/readyz: got %+v, want ready, degraded, and the component disk with the reserve",
			ready,
		)
	}
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, "/sites", map[string]string{"name": "Not now"}},
		{http.MethodPatch, "/sites/" + tenant.Site, map[string]string{"name": "Not now"}},
		{http.MethodPost, "/invitations", map[string]string{"email": "not-now@example.com"}},
		{
			http.MethodPost, "/hubs/" + hub.ID + "/devices/1/commands",
			map[string]any{"key": "lock", "value": false},
		},
	} {
		answer, err := tenant.Do(c.method, c.path, c.body)
		harness.Must(t, err)
		if after, _ := strconv.Atoi(
			answer.Header.Get("Retry-After"),
		); answer.Status != http.StatusServiceUnavailable ||
			answer.ErrorType() != "service_unavailable" ||
			after < 1 {
			t.Errorf(
				"%s %s: got %d %s, Retry-After %q; want 503 service_unavailable with Retry-After",
				c.method, c.path, answer.Status, answer.Body, answer.Header.Get("Retry-After"),
			)
		}
		if !strings.Contains(string(answer.Body), "disk") {
			t.Errorf("%s %s: got %s, want the reason", c.method, c.path, answer.Body)
		}
	}
	hub.EventsFrom("log-1", 4, 6)
	// Reads still work, and none of the events was stored.
	tenant.Must(http.MethodGet, "/sites", nil, http.StatusOK)
	tenant.Must(http.MethodGet, "/hubs/"+hub.ID+"/devices/1", nil, http.StatusOK)
	if page := tenant.Events(hub.ID, head, 100, 3); len(page.Data) > 0 {
		t.Errorf(
			"below the reserve: got stored events %s, want none", harness.FormatEvents(page.Data),
		)
	}
	select {
	case ack := <-hub.Acks:
		t.Errorf("below the reserve: got ack %+v, want none", ack)
	default:
	}
	if low := s.Metrics().Value(t, "hubcloud_broker_disk_low"); low != 1 {
		t.Errorf("hubcloud_broker_disk_low: got %v, want 1", low)
	}
	if !strings.Contains(s.Log(), "disk almost full") {
		t.Error("log: want \"disk almost full\"")
	}
	found := false
	out, _, _ := harness.RunBinary(t, "doctor", "--data-dir", dir, "--json")
	for line := range strings.Lines(out) {
		var component struct{ Name, Verdict, Detail string }
		harness.Must(t, json.Unmarshal([]byte(line), &component))
		found = found ||
			component.Name == "disk" && component.Verdict == "wrong" &&
				strings.Contains(component.Detail, "reserve")
	}
	if !found {
		t.Errorf("doctor: got\n%s\nwant the reserve", out)
	}

	harness.Must(t, os.Remove(other))
	streamstest.EventuallyWithin(t, recovery, "/readyz reports ok", func() bool {
		_, ready = readiness(t, s)
		return ready.Ready && !ready.Degraded
	})
	tenant.Must(http.MethodPost, "/sites", map[string]string{"name": "Now"}, http.StatusCreated)
	hub.EventsFrom("log-1", 4, 6)
	hub.WaitAck("log-1", 6)
	startWhenFull(t, s, tenant, func() func() { return streamstest.FillDisk(t, dir) })
}

// readinessAnswer is the body of /readyz.
type readinessAnswer struct {
	Ready, Degraded bool
	Components      []readinessComponent
}

type readinessComponent struct {
	Name   string
	OK     bool
	Detail string
}

func (r readinessAnswer) component(name string) readinessComponent {
	for _, c := range r.Components {
		if c.Name == name {
			return c
		}
	}
	return readinessComponent{}
}

// readiness requests /readyz from the admin port.
func readiness(t *testing.T, s *harness.Service) (status int, answer readinessAnswer) {
	t.Helper()
	response, err := http.Get("http://" + s.Admin + "/readyz")
	if err != nil {
		return 0, answer
	}
	defer response.Body.Close()
	harness.Must(t, json.NewDecoder(response.Body).Decode(&answer))
	return response.StatusCode, answer
}
