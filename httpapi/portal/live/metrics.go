package live

import "github.com/prometheus/client_golang/prometheus"

// metrics is what the package counts.
type metrics struct {
	streams prometheus.Gauge
	events  prometheus.Counter
	gaps    prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_live_streams",
			Help: "Streams of events that pages of the portal have open.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_live_stream_events_total",
			Help: "Events written to pages of the portal, counted for each page.",
		}),
		gaps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_live_gaps_total",
			Help: "Logs that a page could not go on reading where it was, because events had " +
				"expired or the log was begun anew; the page says that there is a gap.",
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.streams, m.events, m.gaps)
	}
	return m
}
