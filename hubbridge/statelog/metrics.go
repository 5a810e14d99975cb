package statelog

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	reads, snapshots *prometheus.CounterVec
	waiting          prometheus.Gauge
}

// The outcomes of reads and snapshots.
const (
	outcomeStored  = "stored"
	outcomePartial = "partial"
	outcomeFailed  = "failed"
	// outcomeDevice marks a read of single devices, after events about them.
	outcomeDevice = "device"
	// outcomeNothing marks a snapshot of a hub of which nothing is known.
	outcomeNothing = "nothing"
)

func newMetrics(r prometheus.Registerer) *metrics {
	metric := promauto.With(r)
	m := &metrics{
		reads: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_statelog_reads_total",
			Help: "Times that a hub was asked for its devices, by outcome: stored, partial " +
				"(some devices did not answer), device (single devices, which have joined or " +
				"changed), failed. What is not stored is asked again.",
		}, []string{"outcome"}),
		snapshots: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_statelog_snapshots_total",
			Help: "Snapshots of the last reported state of a hub's devices, by outcome: stored, " +
				"nothing (nothing is known of the hub), failed.",
		}, []string{"outcome"}),
		waiting: metric.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_statelog_hubs_waiting",
			Help: "Connected hubs of this replica's shards that are to be asked for their devices.",
		}),
	}
	for _, outcome := range []string{
		outcomeStored, outcomePartial, outcomeDevice, outcomeFailed,
	} {
		m.reads.WithLabelValues(outcome)
	}
	for _, outcome := range []string{outcomeStored, outcomeNothing, outcomeFailed} {
		m.snapshots.WithLabelValues(outcome)
	}
	return m
}
