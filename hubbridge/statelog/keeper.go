package statelog

import (
	"bytes"
	"context"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// Keeper keeps the states of the logs of all hubs that its replica serves.
type Keeper struct {
	cfg     Config
	metrics *metrics
	seed    maphash.Seed

	mu   sync.Mutex
	hubs map[domain.HubID]*hub
	// asks are the hubs that are to be asked.
	asks map[domain.HubID]*ask
	// due holds the hubs whose logs must be checked or snapshotted, and nextScan is when it is
	// refilled.
	due      []domain.HubID
	nextScan time.Time
}

// hub is what a Keeper knows of a hub that it serves. Only the goroutine of Run and the worker that
// has the hub use it.
type hub struct {
	// epoch is the one for which the hub was asked or looked at.
	epoch domain.EpochID
	// checkAt is when the log is looked at; zero once it was.
	checkAt time.Time
	// snapshotAt is when the next snapshot is looked for. snapshot is the time of the last one, and
	// snapshotEnd its last sequence.
	snapshotAt, snapshot time.Time
	snapshotEnd          uint64
	busy                 bool
}

// ask is a read that is to be made.
type ask struct {
	due      time.Time
	failures int
	// epoch is the log's epoch at the last read, and notBefore the time of the next read in it.
	epoch     domain.EpochID
	notBefore time.Time
	running   bool
	// again is set by an event that came while the hub was being asked.
	again bool
	// done reports that the read has been made. The entry stays until due to enforce MinInterval.
	done bool
	// devices are those to be asked for by themselves once devicesDue has come.
	devices    map[int64]struct{}
	devicesDue time.Time
}

// New returns a Keeper, which receives commits from now on. The error is cfg.Validate's.
func New(cfg Config) (*Keeper, error) {
	if err := domain.CheckFields("statelog", cfg); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	k := &Keeper{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), seed: maphash.MakeSeed(),
		hubs: map[domain.HubID]*hub{}, asks: map[domain.HubID]*ask{},
	}
	cfg.Journals.Subscribe(k.receive)
	return k, nil
}

// triggers are how the stored events begin after which a hub is asked.
var triggers = [][]byte{
	[]byte(`{"type":"` + domain.EventHubConnected + `"`),
	[]byte(`{"type":"` + domain.EventHubEventsSkipped + `"`),
	[]byte(`{"type":"` + domain.EventHubLogReset + `"`),
}

// deviceTriggers are how the stored events begin after which a hub is asked for the device.
var deviceTriggers = [][]byte{
	[]byte(`{"type":"device.added"`), []byte(`{"type":"device.updated"`),
}

// receive notes the hubs that must be asked.
func (k *Keeper) receive(_ int, commits []journal.Commit) {
	for i := range commits {
		for n := range commits[i].Records {
			r := &commits[i].Records[n]
			if !r.Kind.IsEvent() {
				continue
			}
			begins := func(trigger []byte) bool { return bytes.HasPrefix(r.Payload, trigger) }
			switch {
			case slices.ContainsFunc(triggers, begins) && k.cfg.Serves(r.Hub):
				k.request(domain.HubID(strings.Clone(string(r.Hub))), k.cfg.Delay)
			case slices.ContainsFunc(deviceTriggers, begins) && k.cfg.Serves(r.Hub):
				k.requestDevice(domain.HubID(strings.Clone(string(r.Hub))), r.Payload)
			}
		}
	}
}

// Added notes that an organization has added a hub, which is asked at once if this replica serves
// it: such a hub is connected already, and its devices are not known, not even their names. It does
// not block.
func (k *Keeper) Added(id domain.HubID) {
	access, ok := k.cfg.Hubs.Hub(id)
	if !ok || !k.cfg.Serves(id) {
		return
	}
	k.mu.Lock()
	h := k.hubs[id]
	known := h != nil && h.epoch == access.Epoch.ID
	k.mu.Unlock()
	if !known {
		k.request(id, 0)
	}
}

// request notes that a hub must be asked, after a delay.
func (k *Keeper) request(id domain.HubID, delay time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.asks[id]
	if a == nil {
		a = &ask{done: true}
		k.asks[id] = a
	}
	due := k.nextRead(id, a, delay)
	switch {
	case a.running:
		a.again = true
	case a.done, a.due.After(due):
		// A hub that has just connected need not wait for the pause after a failure.
		a.done, a.due, a.failures = false, due, 0
	}
}

// nextRead returns when a hub may be asked that must be asked after a delay. The caller must hold
// k.mu.
func (k *Keeper) nextRead(id domain.HubID, a *ask, delay time.Duration) time.Time {
	due := k.cfg.Now().Add(delay)
	// Nothing is known of a log with a new epoch, and what the service shows is empty until then.
	access, _ := k.cfg.Hubs.Hub(id)
	if access.Epoch.ID == a.epoch && a.notBefore.After(due) {
		return a.notBefore
	}
	return due
}

// countWaiting sets the gauge. The caller must hold k.mu.
func (k *Keeper) countWaiting() {
	waiting := 0
	for _, a := range k.asks {
		if !a.done {
			waiting++
		}
	}
	k.metrics.waiting.Set(float64(waiting))
}

const (
	// askTick and hubTick are the intervals of the scans for due reads and of all hubs.
	askTick = 200 * time.Millisecond
	hubTick = 5 * time.Second
	// foldTick is the interval of the scans for due checks of logs.
	foldTick = time.Second
	// checkers is how many logs are folded at the same time.
	checkers = 2
)

// Run asks hubs and stores snapshots until ctx ends, and returns ctx's error.
func (k *Keeper) Run(ctx context.Context) error {
	var asking, folding errgroup.Group
	asking.SetLimit(k.cfg.Workers)
	folding.SetLimit(checkers)
	defer asking.Wait()  // workers return no error
	defer folding.Wait() // likewise
	var doubts errgroup.Group
	defer doubts.Wait() // likewise
	doubts.Go(func() error { return k.runDoubts(ctx) })
	ticker := time.NewTicker(min(askTick, k.cfg.Delay))
	defer ticker.Stop()
	looked := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		k.startReads(ctx, &asking)
		if time.Since(looked) >= min(hubTick, k.cfg.Settle) {
			looked = time.Now()
			k.look()
		}
		k.startFolds(ctx, &folding)
	}
}

// look compares the hubs that the replica serves with those that it knows.
func (k *Keeper) look() {
	now := k.cfg.Now()
	served := map[domain.HubID]struct{}{}
	for _, id := range k.cfg.Hubs.Hubs() {
		if k.cfg.Serves(id) {
			served[id] = struct{}{}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.hubs {
		if _, ok := served[id]; !ok {
			delete(k.hubs, id)
		}
	}
	for id, a := range k.asks {
		if _, ok := served[id]; !ok && !a.running {
			delete(k.asks, id)
		}
	}
	for id := range served {
		access, ok := k.cfg.Hubs.Hub(id)
		if !ok {
			continue
		}
		h := k.hubs[id]
		if tip, _ := k.cfg.Journals.Tip(id); h != nil && !h.busy && h.checkAt.IsZero() &&
			tip.Seq > h.snapshotEnd+k.cfg.SnapshotEntries && h.snapshotAt.Sub(now) > checkRetry {
			h.snapshotAt = now
		}
		if h == nil || h.epoch != access.Epoch.ID && !h.busy {
			first := h == nil
			h = &hub{epoch: access.Epoch.ID, checkAt: now}
			if first {
				h.checkAt = now.Add(rand.N(k.cfg.Settle))
			}
			k.hubs[id] = h
		}
	}
	k.countWaiting()
}

// startReads starts the reads that are due, as many as there are workers.
func (k *Keeper) startReads(ctx context.Context, workers *errgroup.Group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.cfg.Now()
	for id, a := range k.asks {
		due, ask := !a.due.After(now), k.ask
		switch {
		case a.running:
			continue
		case len(a.devices) > 0 && !a.devicesDue.After(now):
			ask = k.askForDevices // also before a whole read, which may take long
		case !due:
			continue
		case a.done && len(a.devices) == 0 && !a.devicesDue.After(now):
			delete(k.asks, id)
			continue
		case a.done:
			continue
		}
		a.running = true
		if !workers.TryGo(func() error { ask(ctx, id, a); return nil }) {
			a.running = false
			break
		}
	}
	k.countWaiting()
}

// startFolds starts the looks at logs and the snapshots that are due.
func (k *Keeper) startFolds(ctx context.Context, workers *errgroup.Group) {
	k.mu.Lock()
	if now := k.cfg.Now(); !k.nextScan.After(now) {
		k.nextScan = now.Add(min(foldTick, k.cfg.Settle))
		for id, h := range k.hubs {
			if !h.busy && !h.checkAt.After(now) && !h.snapshotAt.After(now) {
				h.busy = true
				k.due = append(k.due, id)
			}
		}
	}
	waiting := len(k.due)
	k.mu.Unlock()
	for range min(waiting, checkers) {
		workers.TryGo(func() error {
			for k.runFold(ctx) {
			}
			return nil
		})
	}
}

// runFold looks at one of the logs that are due, and reports whether there was one.
func (k *Keeper) runFold(ctx context.Context) bool {
	k.mu.Lock()
	if len(k.due) == 0 || ctx.Err() != nil {
		k.mu.Unlock()
		return false
	}
	id := k.due[0]
	k.due = k.due[1:]
	h := k.hubs[id]
	k.mu.Unlock()
	if h == nil {
		return true // not served any more
	}
	if h.checkAt.IsZero() {
		k.snapshot(ctx, id, h)
	} else {
		k.check(ctx, id, h)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	h.busy = false
	return true
}
