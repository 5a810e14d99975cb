package broker

import (
	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the server's own counts when it is asked.
type collector struct {
	server *server.Server

	connections, slow, storage, storageLimit, streams *prometheus.Desc
}

func newCollector(s *server.Server) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("hubcloud_broker_"+name, help, nil, nil)
	}
	return &collector{
		server:       s,
		connections:  desc("connections", "Connections to the broker, of hubs and of the service."),
		slow:         desc("slow_consumers_total", "Connections that did not read what they were sent and were cut off."),
		storage:      desc("storage_bytes", "Bytes that streams hold on disk."),
		storageLimit: desc("storage_limit_bytes", "Bytes that streams may hold on disk."),
		streams:      desc("streams", "Streams, of hub logs and others."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector. After the server's end only the counts that outlive it are there.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(c.server.NumClients()))
	ch <- prometheus.MustNewConstMetric(c.slow, prometheus.CounterValue, float64(c.server.NumSlowConsumers()))
	info, err := c.server.Jsz(nil)
	if err != nil || info.Disabled {
		return
	}
	ch <- prometheus.MustNewConstMetric(c.storage, prometheus.GaugeValue, float64(info.Store))
	ch <- prometheus.MustNewConstMetric(c.storageLimit, prometheus.GaugeValue, float64(info.Config.MaxStore))
	ch <- prometheus.MustNewConstMetric(c.streams, prometheus.GaugeValue, float64(info.Streams))
}
