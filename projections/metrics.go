package projections

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections/internal/query"
)

// metrics are the package's, by the label `projection` (directory, presence) where they are a
// projection's. What a projection's are, only the process that projects has; the others have none
// of them.
type metrics struct {
	sequence, head, stopped *prometheus.GaugeVec
	stoppedByOperator       *prometheus.GaugeVec
	lagEvents, lagSeconds   *prometheus.GaugeVec
	events                  *prometheus.CounterVec
	commits                 *prometheus.HistogramVec
	interruptions           *prometheus.CounterVec
	leading                 prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{
			Namespace: "hubcloud",
			Subsystem: "projections",
			Name:      name,
			Help:      help,
		}
	}
	by := []string{"projection"}
	m := &metrics{
		sequence: prometheus.NewGaugeVec(
			gauge("sequence", "Sequence of the last event that the read models have."), by,
		),
		head: prometheus.NewGaugeVec(
			gauge("head_sequence", "Sequence of the stream's last event, as of at most 5 s ago."),
			by,
		),
		lagEvents: prometheus.NewGaugeVec(gauge(
			"lag_events",
			"Events of the stream that the read models do not have, as of at most 5 s ago. What "+
				"is read through the API is older by those.",
		), by),
		lagSeconds: prometheus.NewGaugeVec(gauge(
			"lag_seconds",
			"Seconds for which the oldest event that the read models lack has been there, as of "+
				"at most 5 s ago; 0 when they have all. More than a few "+
				"is a projector that stands or a database that is slow.",
		), by),
		stopped: prometheus.NewGaugeVec(gauge(
			"stopped",
			"1 while an event that cannot be applied stops the projection. `hubcloud projections "+
				"status` says which, and why.",
		), by),
		stoppedByOperator: prometheus.NewGaugeVec(gauge(
			"stopped_by_operator",
			"1 while an operator has stopped the projection (`hubcloud projections stop`); `resume` has it go on.",
		), by),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "events_total",
			Help: "Events applied to the read models.",
		}, by),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "commit_duration_seconds",
			Help: "Seconds to apply a batch of events in one transaction. A rise is a slow database.",
			// From half a millisecond to four seconds.
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, by),
		interruptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "interruptions_total",
			Help: "Times that a projection lost the database or the broker and went on from its " +
				"checkpoint. A rise is a database that is away or restarts.",
		}, by),
		leading: prometheus.NewGauge(gauge(
			"leading",
			"1 while this process builds the read models. Over all replicas the sum is 1; 0 for "+
				"long is read models that stand still.",
		)),
	}
	for _, projection := range []string{DirectoryProjection, PresenceProjection} {
		m.stopped.WithLabelValues(projection)
		m.stoppedByOperator.WithLabelValues(projection)
		m.events.WithLabelValues(projection)
		m.commits.WithLabelValues(projection)
		m.interruptions.WithLabelValues(projection)
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{
		m.sequence, m.head, m.lagEvents, m.lagSeconds, m.stopped, m.stoppedByOperator, m.events,
		m.commits, m.interruptions, m.leading,
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// hold tells what operators have stopped.
func (m *metrics) hold(stops []query.HubcloudStop) {
	for _, projection := range []string{DirectoryProjection, PresenceProjection} {
		value := 0.0
		if _, stopped := stopOf(stops, projection); stopped {
			value = 1
		}
		m.stoppedByOperator.WithLabelValues(projection).Set(value)
	}
}

// resign takes back what only the process that projects knows: another one tells it now.
func (m *metrics) resign() {
	m.leading.Set(0)
	for _, gauge := range []*prometheus.GaugeVec{m.sequence, m.head, m.lagEvents, m.lagSeconds} {
		gauge.Reset()
	}
	for _, projection := range []string{DirectoryProjection, PresenceProjection} {
		m.stopped.WithLabelValues(projection).Set(0)
		m.stoppedByOperator.WithLabelValues(projection).Set(0)
	}
}

// poolCollector reads how the connections for queries do when it is asked.
type poolCollector struct {
	stat                       func() *pgxpool.Stat
	used, idle, limit          *prometheus.Desc
	waits, waitSeconds, cancel *prometheus.Desc
}

func newPoolCollector(pool *pgxpool.Pool) *poolCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("hubcloud_projections_pool_"+name, help, nil, nil)
	}
	return &poolCollector{
		stat: pool.Stat,
		used: desc(
			"connections_used", "Connections to the database that queries use at the moment.",
		),
		idle: desc("connections_idle", "Connections to the database that wait for a query."),
		limit: desc(
			"connections_limit",
			"Most connections to the database that queries may use. As many in use as that is a database that is slow.",
		),
		waits: desc(
			"waits_total",
			"Queries that had to wait for a connection to the database. A rise is a database that is slow.",
		),
		waitSeconds: desc(
			"wait_seconds_total", "Seconds that queries waited for a connection to the database.",
		),
		cancel: desc(
			"canceled_total",
			"Queries whose caller gave up before there was a connection to the database.",
		),
	}
}

// Describe implements prometheus.Collector.
func (c *poolCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *poolCollector) Collect(ch chan<- prometheus.Metric) {
	stat := c.stat()
	ch <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(stat.AcquiredConns()))
	ch <- prometheus.MustNewConstMetric(c.idle, prometheus.GaugeValue, float64(stat.IdleConns()))
	ch <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(stat.MaxConns()))
	ch <- prometheus.MustNewConstMetric(c.waits, prometheus.CounterValue, float64(stat.EmptyAcquireCount()))
	ch <- prometheus.MustNewConstMetric(c.waitSeconds, prometheus.CounterValue, stat.EmptyAcquireWaitTime().Seconds())
	ch <- prometheus.MustNewConstMetric(c.cancel, prometheus.CounterValue, float64(stat.CanceledAcquireCount()))
}

// register publishes how far the index of keys and hubs is.
func (a *Access) register(r prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "hubcloud_projections_access_" + name, Help: help}, value,
		)
	}
	counted := func(count func() int) func() float64 {
		return func() float64 {
			a.mu.RLock()
			defer a.mu.RUnlock()
			return float64(count())
		}
	}
	r.MustRegister(
		gauge(
			"sequence",
			"Sequence of the last event that this replica's index of keys, members and hubs has: "+
				"by what it lets requests in.",
			func() float64 { return float64(a.Applied()) },
		),
		gauge(
			"unread_events",
			"Events of the directory that this replica could not read since it started, and "+
				"passed over; a key that one is about is refused. "+
				"Above 0 is a program that is older than who writes, or somebody who writes to the directory by hand.",
			counted(func() int { return a.unread }),
		),
		gauge(
			"keys", "API keys in force, of all organizations.",
			counted(func() int { return len(a.keys) }),
		),
		gauge(
			"hubs", "Hubs that organizations have added.",
			counted(func() int { return len(a.hubs) }),
		),
	)
}
