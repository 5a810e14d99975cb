package presence

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's, named hubcloud_presence_….
type metrics struct {
	hubs, online          prometheus.Gauge
	comparisons, overruns prometheus.Counter
}

// newMetrics makes the metrics and registers them, unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		hubs: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_presence_hubs",
			Help: "Hubs that have connected at least once, of all organizations and of none.",
		}),
		online: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_presence_hubs_online",
			Help: "Hubs that are connected, over all brokers, as this replica sees it. A sudden " +
				"fall is a network, a broker or a certificate.",
		}),
		comparisons: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_presence_comparisons_total",
			Help: "Comparisons of what is told of hubs' connections with the broker's own list, " +
				"one a shard every 30 s. None for minutes is a bridge " +
				"that does not look after its shards.",
		}),
		overruns: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_presence_overruns_total",
			Help: "Times that the broker's events about connections came too fast and some were " +
				"dropped; a comparison with its list makes up for them.",
		}),
	}
	if r != nil {
		r.MustRegister(m.hubs, m.online, m.comparisons, m.overruns)
	}
	return m
}
