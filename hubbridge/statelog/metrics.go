package statelog

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
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
	metric := telemetry.NewMetrics(r, "statelog")
	return &metrics{
		reads: metric.Counters("reads_total", "Times that a hub was asked for its devices, by outcome: stored, "+
			"partial (some devices did not answer), device (single devices, which have joined or changed), "+
			"failed. What is not stored is asked again.",
			"outcome", outcomeStored, outcomePartial, outcomeDevice, outcomeFailed),
		snapshots: metric.Counters("snapshots_total", "Snapshots of the last reported state of a hub's devices, "+
			"by outcome: stored, nothing (nothing is known of the hub), failed.",
			"outcome", outcomeStored, outcomeNothing, outcomeFailed),
		waiting: metric.Gauge("hubs_waiting", "Connected hubs of this replica's shards that are to be asked for "+
			"their devices."),
	}
}
