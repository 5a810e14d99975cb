package orgfeed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/telemetry"
)

// registryMetrics are the registry's metrics. Every replica knows the readers of all organizations.
type registryMetrics struct {
	readers  *prometheus.GaugeVec
	expiry   prometheus.Gauge
	evicted  prometheus.Counter
	failures prometheus.Counter
}

func newRegistryMetrics(
	registerer prometheus.Registerer, retention time.Duration,
) *registryMetrics {
	metric := telemetry.NewMetrics(registerer, "orgfeed")
	m := &registryMetrics{
		readers: metric.Gauges("readers", "Readers of events that name themselves, of all organizations, by how "+
			"close they are to losing events: `endangered` ones have less than a quarter of the retention left, "+
			"`expired` ones get 410. Every replica reports all readers.",
			"state", telemetry.Values(domain.FeedReaderStates())...),
		expiry: metric.Gauge("readers_expire_seconds", "Seconds until the position of the most endangered reader "+
			"expires, of those that have not expired; the retention if there is none."),
		evicted: metric.Counter("readers_evicted_total", "Readers dropped because their organization has more "+
			"than 1,000, or this replica knows more than 100,000. A rise means a client that makes up names."),
		failures: metric.Counter("readers_write_failures_total", "Failed writes of the list of readers. The "+
			"service retries; until then other replicas show older positions."),
	}
	m.expiry.Set(retention.Seconds())
	return m
}

// measure sets the gauges.
func (r *Registry) measure() {
	counts := map[domain.FeedReaderState]int{}
	least := r.cfg.Retention
	now := r.cfg.Now()
	r.mu.Lock()
	for id, o := range r.orgs {
		r.removeOld(o, now)
		for e := o.newest.Front(); e != nil; e = e.Next() {
			seen := e.Value.(*reader)
			if !r.isShown(id, seen) {
				continue
			}
			left := r.left(seen, now)
			state := domain.FeedReaderStateIn(left, r.cfg.Retention)
			counts[state]++
			if state != domain.FeedReaderExpired {
				least = min(least, left)
			}
		}
	}
	r.mu.Unlock()
	for _, state := range domain.FeedReaderStates() {
		r.metrics.readers.WithLabelValues(string(state)).Set(float64(counts[state]))
	}
	r.metrics.expiry.Set(least.Seconds())
}
