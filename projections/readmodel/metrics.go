package readmodel

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolCollector collects the metrics of the connections for queries.
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
		used: desc("connections_used", "Connections to the database that queries use."),
		idle: desc("connections_idle", "Idle connections to the database."),
		limit: desc(
			"connections_limit",
			"Limit of the connections to the database that queries use. If all are in use, the "+
				"database is slow.",
		),
		waits: desc(
			"waits_total",
			"Queries that had to wait for a connection to the database. A rise means a "+
				"slow database.",
		),
		waitSeconds: desc(
			"wait_seconds_total", "Seconds that queries waited for a connection to the database.",
		),
		cancel: desc(
			"canceled_total",
			"Queries canceled while they waited for a connection to the database.",
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
