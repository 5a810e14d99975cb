package streams

import (
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
)

// connections collects the metrics of the service's connections to the broker.
type connections struct {
	all []*nats.Conn

	up, down, reconnects, in, out *prometheus.Desc
}

// NewCollector returns a collector of metrics of conns, named hubcloud_streams_…
func NewCollector(conns ...*Conns) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("hubcloud_streams_"+name, help, nil, nil)
	}
	c := &connections{
		up: desc("connections_up", "The service's own connections to the broker that are up."),
		down: desc(
			"connections_down",
			"The service's own connections to the broker that are lost and reconnecting. "+
				"More than 0 for long means that the broker is down.",
		),
		reconnects: desc(
			"reconnects_total", "Reconnects of the service's own connections to the broker.",
		),
		in:  desc("received_bytes_total", "Bytes that the service received from the broker."),
		out: desc("sent_bytes_total", "Bytes sent to the broker."),
	}
	for _, some := range conns {
		c.all = append(c.all, some.All()...)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *connections) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *connections) Collect(ch chan<- prometheus.Metric) {
	var up, reconnects, in, out float64
	for _, nc := range c.all {
		if nc.IsConnected() {
			up++
		}
		stats := nc.Stats()
		reconnects += float64(stats.Reconnects)
		in += float64(stats.InBytes)
		out += float64(stats.OutBytes)
	}
	ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(c.down, prometheus.GaugeValue, float64(len(c.all))-up)
	ch <- prometheus.MustNewConstMetric(c.reconnects, prometheus.CounterValue, reconnects)
	ch <- prometheus.MustNewConstMetric(c.in, prometheus.CounterValue, in)
	ch <- prometheus.MustNewConstMetric(c.out, prometheus.CounterValue, out)
}
