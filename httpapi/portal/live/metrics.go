package live

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	streams prometheus.Gauge
	events  prometheus.Counter
	gaps    prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	metric := promauto.With(registerer)
	m := &metrics{
		streams: metric.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_live_streams",
			Help: "Open event streams of portal pages.",
		}),
		events: metric.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_live_stream_events_total",
			Help: "Events sent to portal pages. An event sent to two pages counts twice.",
		}),
		gaps: metric.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_live_gaps_total",
			Help: "Gaps reported to portal pages: events of a hub that are gone, and expired positions.",
		}),
	}
	return m
}
