package statemodel

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the projector's metrics. Those of a process that stands by are 0.
type metrics struct {
	leading                 prometheus.Gauge
	hubs, channels, behind  *prometheus.GaugeVec
	records, rows           prometheus.Counter
	unreadable, flushErrors prometheus.Counter
	flushSeconds            prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hubcloud_statemodel_" + name, Help: help,
		}, []string{"journal"})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_statemodel_" + name + "_total", Help: help,
		})
	}
	m := &metrics{
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_statemodel_leading",
			Help: "1 in the process that projects last reported states.",
		}),
		hubs: gauge("cached_hubs", "Hubs whose last reported state is in memory."),
		channels: gauge(
			"cached_channels", "Channels whose last reported state is in memory.",
		),
		behind: gauge(
			"behind_seconds",
			"Age of the oldest record of a journal when it was written to the last reported states.",
		),
		records: counter("records", "Records of hub logs folded into last reported states."),
		rows:    counter("rows", "Rows of last reported states written."),
		unreadable: counter(
			"unreadable", "Records that could not be folded and put their hub in doubt.",
		),
		flushErrors: counter("flush_errors", "Failed transactions of last reported states."),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "hubcloud_statemodel_flush_seconds",
			Help:    "Duration of the transactions that write last reported states.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	if registry == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.leading, m.hubs, m.channels, m.behind, m.records, m.rows, m.unreadable, m.flushErrors,
		m.flushSeconds,
	} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}

// stopLeading sets the gauges of a process that stands by.
func (m *metrics) stopLeading() {
	m.leading.Set(0)
	m.hubs.Reset()
	m.channels.Reset()
	m.behind.Reset()
}
