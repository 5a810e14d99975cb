package ingest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

const (
	// helloTime is how long a connected hub may take to send its hello. A hub sends it at once.
	helloTime = time.Minute
	// progressTime is how long a connected hub may take to send the next event that the cloud
	// lacks. A hub sends again after 5 s without an ack; one with a slow line needs half a minute
	// for a message of the largest size.
	progressTime = 45 * time.Second
	// quietTime is how long a fault that is an act lasts after its last repeat.
	quietTime = 10 * time.Minute
	// tick is the time between two looks at waiting hubs and old faults.
	tick = 5 * time.Second
	// maxHubs bounds the hubs with faults, and maxWaiting the hubs that are waited for.
	maxHubs    = 1000
	maxWaiting = 20_000
	// logEvery and logBurst bound the log lines, which hubs cause.
	logEvery = time.Second
	logBurst = 20
)

// FaultConfig configures a FaultRegistry. Every field may be zero.
type FaultConfig struct {
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Logger receives a line when a fault begins and when it ends. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics is where the metrics are registered; nil registers nothing.
	Metrics prometheus.Registerer
}

// FaultRegistry keeps the faults of hubs. It is safe for concurrent use.
type FaultRegistry struct {
	now    func() time.Time
	logger *slog.Logger
	lines  *rate.Limiter
	hubs   *prometheus.GaugeVec
	seen   *prometheus.CounterVec

	mu     sync.Mutex
	faults map[domain.HubID][]*Fault
	// hellos holds since when a hello of a hub is waited for, progress the events.
	hellos   map[domain.HubID]time.Time
	progress map[domain.HubID]progress
}

// progress is the wait for the next events of a hub.
type progress struct {
	since time.Time
	// through is the number that the cloud has, announced the highest that the hub has. from is the
	// first number that the hub last sent too early; 0 for none.
	through, announced, from uint64
}

// NewFaults returns a FaultRegistry. Run must run for it to notice what does not happen.
func NewFaults(cfg FaultConfig) *FaultRegistry {
	reasons := telemetry.Values(FaultReasons())
	metric := telemetry.NewMetrics(cfg.Metrics, "hubbridge")
	r := &FaultRegistry{
		now:    cfg.Now,
		logger: cmp.Or(cfg.Logger, slog.Default()),
		lines:  rate.NewLimiter(rate.Every(logEvery), logBurst),
		hubs: metric.Gauges("faulty_hubs", "Hubs of the shards of this replica that break the hub protocol at "+
			"present, by reason. The log, `hubcloud doctor` and the hub's page in the portal name them.",
			"reason", reasons...),
		seen: metric.Counters("hub_faults_total", "Breaches of the hub protocol that were noticed, by reason.",
			"reason", reasons...),
		faults:   make(map[domain.HubID][]*Fault),
		hellos:   make(map[domain.HubID]time.Time),
		progress: make(map[domain.HubID]progress),
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r
}

// Run looks for hubs that do not do what they must, and ends old faults, until ctx ends. It returns
// ctx's error.
func (r *FaultRegistry) Run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			r.Check()
		}
	}
}

// Check looks for hubs that have not done what they must in time, and ends faults that have not
// been repeated. Run calls it.
func (r *FaultRegistry) Check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for hub, since := range r.hellos {
		if now.Sub(since) >= helloTime {
			r.report(hub, FaultNoHello, "connected without a valid hello since "+domain.FormatTime(since))
		}
	}
	for hub, p := range r.progress {
		if now.Sub(p.since) >= progressTime {
			r.report(hub, FaultNoProgress, p.detail())
		}
	}
	for hub, faults := range r.faults {
		for _, f := range slices.Clone(faults) {
			if !f.Reason.waits() && now.Sub(f.Last) >= quietTime {
				r.end(hub, f.Reason)
			}
		}
	}
}

func (p progress) detail() string {
	if p.from > 0 {
		return fmt.Sprintf(
			"sends from %d again, although %d is the next number", p.from, p.through+1,
		)
	}
	return fmt.Sprintf("has %d, does not send %d, which is the next number", p.announced, p.through+1)
}

// Report notes that a hub does something wrong, with the evidence.
func (r *FaultRegistry) Report(hub domain.HubID, reason FaultReason, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report(hub, reason, detail)
}

func (r *FaultRegistry) report(hub domain.HubID, reason FaultReason, detail string) {
	detail = printable(detail)
	now := r.now().UTC()
	known := r.find(hub, reason)
	switch {
	case known != nil:
		known.Last, known.Detail = now, detail
		if !reason.waits() {
			known.Count++
			r.seen.WithLabelValues(string(reason)).Inc()
		}
		return
	case reason == FaultMQTTViolation && r.find(hub, FaultQoS2) != nil:
		return // the fault is known more exactly
	case reason == FaultQoS2:
		r.end(hub, FaultMQTTViolation)
	}
	r.seen.WithLabelValues(string(reason)).Inc()
	if _, ok := r.faults[hub]; !ok && len(r.faults) >= maxHubs {
		return
	}
	r.faults[hub] = append(r.faults[hub], &Fault{
		HubID: hub, Reason: reason, Since: now, Last: now, Count: 1, Detail: detail,
	})
	r.hubs.WithLabelValues(string(reason)).Inc()
	if r.lines.Allow() {
		r.logger.Warn("hub breaks the protocol", "hub_id", hub, "reason", reason, "detail", detail)
	}
}

// find returns a fault; nil if the hub has none of that reason. The caller must hold the mutex.
func (r *FaultRegistry) find(hub domain.HubID, reason FaultReason) *Fault {
	for _, f := range r.faults[hub] {
		if f.Reason == reason {
			return f
		}
	}
	return nil
}

// end ends a fault. The caller must hold the mutex.
func (r *FaultRegistry) end(hub domain.HubID, reason FaultReason) {
	f := r.find(hub, reason)
	if f == nil {
		return
	}
	r.drop(hub, reason)
	if r.lines.Allow() {
		r.logger.Info("hub follows the protocol again", "hub_id", hub, "reason", reason,
			"since", domain.FormatTime(f.Since), "count", f.Count)
	}
}

// drop removes a fault. The caller must hold the mutex.
func (r *FaultRegistry) drop(hub domain.HubID, reason FaultReason) {
	r.hubs.WithLabelValues(string(reason)).Dec()
	left := slices.DeleteFunc(r.faults[hub], func(f *Fault) bool { return f.Reason == reason })
	if r.faults[hub] = left; len(left) == 0 {
		delete(r.faults, hub)
	}
}

// Connected notes that a hub has connected, which must be followed by its hello.
func (r *FaultRegistry) Connected(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.hellos[hub]; !ok && len(r.hellos) < maxWaiting {
		r.hellos[hub] = r.now()
	}
}

// Hello notes a hello of a hub, also an invalid one.
func (r *FaultRegistry) Hello(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hellos, hub)
	r.end(hub, FaultNoHello)
}

// Behind notes that a hub has events up to the number announced, of which those up to through are
// stored. from is the first number of a message that began too late in the numbering; 0 for none.
func (r *FaultRegistry) Behind(hub domain.HubID, through, announced, from uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.progress[hub]
	if !ok && len(r.progress) >= maxWaiting {
		return
	}
	if !ok || p.through != through {
		p = progress{since: r.now(), through: through}
		r.end(hub, FaultNoProgress)
	}
	p.announced = announced
	if from > 0 {
		p.from = from
	}
	r.progress[hub] = p
}

// CaughtUp notes that every event that a hub is known to have is stored.
func (r *FaultRegistry) CaughtUp(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.progress, hub)
	r.end(hub, FaultNoProgress)
}

// Postpone begins the wait for a hub's events anew, after the cloud itself could not store some.
func (r *FaultRegistry) Postpone(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.progress[hub]; ok {
		p.since = r.now()
		r.progress[hub] = p
	}
}

// Disconnected notes that a hub has disconnected: nothing is waited for any more.
func (r *FaultRegistry) Disconnected(hub domain.HubID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hellos, hub)
	delete(r.progress, hub)
	r.end(hub, FaultNoHello)
	r.end(hub, FaultNoProgress)
}

// Forget removes everything about the hubs that another process serves from now on.
func (r *FaultRegistry) Forget(gone func(domain.HubID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for hub := range r.hellos {
		if gone(hub) {
			delete(r.hellos, hub)
		}
	}
	for hub := range r.progress {
		if gone(hub) {
			delete(r.progress, hub)
		}
	}
	for hub, faults := range r.faults {
		if gone(hub) {
			for _, f := range slices.Clone(faults) {
				r.drop(hub, f.Reason)
			}
		}
	}
}

// Faults returns the present faults of the hubs that pass, by hub and time.
func (r *FaultRegistry) Faults(pass func(domain.HubID) bool) []Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Fault
	for hub, faults := range r.faults {
		if pass(hub) {
			for _, f := range faults {
				all = append(all, *f)
			}
		}
	}
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.HubID, b.HubID), a.Since.Compare(b.Since))
	})
	return all
}
