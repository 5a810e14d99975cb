package presence

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the metrics hubcloud_presence_….
type metrics struct {
	hubs, online          prometheus.Gauge
	comparisons, overruns prometheus.Counter
}

// newMetrics returns the metrics, registered with r unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(r, "presence")
	return &metrics{
		hubs: metric.Gauge("hubs", "Hubs that have connected at least once, with or without an organization."),
		online: metric.Gauge("hubs_online", "Connected hubs, over all brokers, as this replica sees them. A "+
			"sudden fall means a failure of the network or a broker, or an expired certificate."),
		comparisons: metric.Counter("comparisons_total", "Comparisons of the recorded presence of hubs with the "+
			"broker's list of connections, one per shard every 30 s. None for minutes means that the bridge does "+
			"not serve its shards."),
		overruns: metric.Counter("overruns_total", "Times that the broker's events about connections came too "+
			"fast and some were dropped. A comparison with the broker's list follows at once."),
	}
}
