//go:build linux

package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubcloud/test/harness"
	"hubcloud/test/lossyfs"
)

var (
	// powerCuts is how often TestPowerCut cuts the power under load. Each costs about four seconds.
	powerCuts = flag.Int("power.cuts", 2, "how often TestPowerCut cuts the power")
	// powerSeed repeats the losses of an earlier run, but not the moments of its power cuts.
	powerSeed = flag.Uint64("power.seed", 0, "seed of what power cuts lose; 0 for any")
)

// TestPowerCut cuts the power of the data directory's disk under traffic. All unsynced changes are
// lost, or a random part. Events acknowledged to a hub are stored once and in order, events that
// were read keep their cursors, created sites persist, and every command ran once.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	seed := *powerSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-power.seed %d", seed)
	disk := lossyfs.Mount(t, t.TempDir())
	dir := filepath.Join(disk.Dir, "data")
	cutFirstStarts(t, disk, dir, seed)
	s := harness.StartIn(t, dir, "--rate", "100000", "--burst", "100000")
	load := newPowerLoad(t, s)
	for n := range *powerCuts {
		harness.AnyMoment(500*time.Millisecond, 2*time.Second)
		disk.CutPower(lossyfs.Loss(n%2), seed+uint64(n), s.KillAll, s.WaitGone)
		s.Begin()
	}
	load.check()
}

// cutFirstStarts cuts the power at random moments of the first start. The next start must succeed.
func cutFirstStarts(t *testing.T, disk *lossyfs.Disk, dir string, seed uint64) {
	t.Helper()
	for n := range max(1, *powerCuts/3) {
		first := exec.Command(
			harness.Binary(t), "serve", "--data-dir", dir, "--http", "127.0.0.1:0",
			"--admin", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--nats", "127.0.0.1:0",
			"--environment", "dev",
		)
		first.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		harness.Must(t, first.Start())
		harness.AnyMoment(100*time.Millisecond, 4100*time.Millisecond)
		disk.CutPower(
			lossyfs.Loss(n%2),
			seed^uint64(n),
			func() { harness.KillIn(first.Process.Pid, dir) },
			func() {
				_ = first.Wait() // Wait reports the kill
				harness.WaitGoneFrom(t, dir)
			},
		)
	}
}

// powerLoad is the traffic during power cuts: hubs that send, consumers that read, and clients that
// create sites and send commands.
type powerLoad struct {
	t                        *testing.T
	tenant                   *harness.Tenant
	senders                  []*sender
	pages, streams           []*follower
	starts                   []string
	stopSending, stopReading chan struct{}
	sending, reading         sync.WaitGroup

	lamp  *harness.RawHub
	sites []string
	// ran has the commands that the hub ran, by command id.
	mu       sync.Mutex
	ran      map[string]int
	accepted int
}

func newPowerLoad(t *testing.T, s *harness.Service) *powerLoad {
	t.Helper()
	l := &powerLoad{
		t: t, tenant: harness.NewTenant(t, s, "Power"), ran: map[string]int{},
		stopSending: make(chan struct{}), stopReading: make(chan struct{}),
	}
	for range 3 {
		hub := adopted(t, s, l.tenant)
		hub.Disconnect()
		start := l.tenant.Head(hub.ID)
		l.senders = append(l.senders, &sender{hub: hub, pace: 50 * time.Millisecond})
		l.pages = append(
			l.pages, &follower{client: l.tenant.Client, hub: hub.ID, unavailable: true},
		)
		l.streams = append(
			l.streams, &follower{client: l.tenant.Client, hub: hub.ID, cursor: start},
		)
		l.starts = append(l.starts, start)
	}
	for i := range l.senders {
		l.sending.Go(func() { l.senders[i].run(l.stopSending) })
		l.reading.Go(func() { l.pages[i].run(l.stopReading) })
		l.reading.Go(func() { l.streams[i].runStream(l.stopReading) })
	}
	l.lamp = adopted(t, s, l.tenant)
	l.lamp.Disconnect()
	l.lamp.OnRequest(l.runCommand)
	l.sending.Go(l.keepLampConnected)
	l.sending.Go(l.createSites)
	l.sending.Go(l.command)
	return l
}

// keepLampConnected reconnects the hub that runs commands after each cut.
func (l *powerLoad) keepLampConnected() {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for !l.over() {
		if err := l.lamp.TryConnect(l.lamp.ID); err != nil {
			<-retry.C
			continue
		}
		l.lamp.Hello("log-1", 1, 0)
		select {
		case <-l.lamp.Lost:
		case <-l.stopSending:
			l.lamp.Disconnect()
		}
	}
}

// over reports whether the senders must stop.
func (l *powerLoad) over() bool { return isClosed(l.stopSending) }

// runCommand runs a command once per command id and repeats its answer.
func (l *powerLoad) runCommand(r harness.Request) harness.Response {
	var params struct {
		CommandID string `json:"command_id"`
		Value     json.RawMessage
	}
	r.DecodeParams(&params)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[params.CommandID]++
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	return harness.Response{Result: map[string]any{"channel": map[string]any{
		"key": "switch", "endpoint": 0, "kind": "switch", "unit": nil, "readable": true,
		"writable": true, "capabilities": map[string]any{},
		"available": true, "value": false, "observed_at": now, "desired": params.Value,
		"desired_at": now, "status": "pending",
	}}}
}

// createSites creates sites one after the other and records those that were answered.
func (l *powerLoad) createSites() {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for n := 0; !l.over(); n++ {
		<-retry.C
		answer, err := l.tenant.Try(
			http.MethodPost, "/sites", map[string]string{"name": fmt.Sprintf("Site %d", n)},
		)
		if err != nil || answer.Status != http.StatusCreated {
			continue
		}
		var site struct{ ID string }
		answer.JSON(l.t, &site)
		l.sites = append(l.sites, site.ID)
	}
}

// command sends one command after the other, each with one Idempotency-Key until it is accepted.
func (l *powerLoad) command() {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for n := 0; !l.over(); n++ {
		for !l.over() {
			<-retry.C
			answer, err := l.tenant.Do(
				http.MethodPost, "/hubs/"+l.lamp.ID+"/devices/1/commands",
				`{"key":"switch","value":true}`, "Idempotency-Key", fmt.Sprint("power-", n),
			)
			if err == nil && answer.Status == http.StatusAccepted {
				l.accepted++
				break
			}
		}
	}
}

// check stops the load and checks that nothing is lost, duplicated, moved or out of order.
func (l *powerLoad) check() {
	t := l.t
	t.Helper()
	harness.Elapse(time.Second) // of quiet traffic after the last cut
	close(l.stopSending)
	l.sending.Wait()
	var acked uint64
	for _, h := range l.senders {
		stored := l.tenant.AllEvents(h.hub.ID, "")
		if last := numbersOf(t, h.hub.ID+" stored", stored); last < h.acked {
			t.Errorf("hub %s: acknowledged through %d, stored through %d", h.hub.ID, h.acked, last)
		}
		acked += h.acked
	}
	close(l.stopReading)
	l.reading.Wait()
	for i, h := range l.senders {
		same(t, h.hub.ID+", by page", l.pages[i].got, l.tenant.AllEvents(h.hub.ID, ""))
		same(t, h.hub.ID+", by stream", l.streams[i].got, l.tenant.AllEvents(h.hub.ID, l.starts[i]))
	}
	for _, id := range l.sites {
		if answer, err := l.tenant.Try(http.MethodGet, "/sites/"+id, nil); err != nil ||
			answer.Status != http.StatusOK {
			t.Errorf("created site: got %d, %v; want 200", answer.Status, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.accepted
	// the last command may not have been answered
	if len(l.ran) < keys || len(l.ran) > keys+1 {
		t.Errorf("accepted %d commands, hub got %d command ids", keys, len(l.ran))
	}
	t.Logf("acknowledged: %d events, %d sites, %d commands", acked, len(l.sites), keys)
	if acked == 0 || len(l.sites) == 0 || keys == 0 {
		t.Error("got no acks between two cuts")
	}
}
