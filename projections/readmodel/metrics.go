package readmodel

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// newPoolCollector returns a collector of the metrics of the connections for queries.
func newPoolCollector(pool *pgxpool.Pool) prometheus.Collector {
	return telemetry.NewCollector("projections_pool", func(gauge, counter telemetry.Sample) {
		stat := pool.Stat()
		gauge("connections_used", "Connections to the database that queries use.", float64(stat.AcquiredConns()))
		gauge("connections_idle", "Idle connections to the database.", float64(stat.IdleConns()))
		gauge("connections_limit", "Limit of the connections to the database that queries use. If all are in use, "+
			"the database is slow.", float64(stat.MaxConns()))
		counter("waits_total", "Queries that had to wait for a connection to the database. A rise means a slow "+
			"database.", float64(stat.EmptyAcquireCount()))
		counter("wait_seconds_total", "Seconds that queries waited for a connection to the database.",
			stat.EmptyAcquireWaitTime().Seconds())
		counter("canceled_total", "Queries canceled while they waited for a connection to the database.",
			float64(stat.CanceledAcquireCount()))
	})
}
