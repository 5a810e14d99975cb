package streams

import (
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// NewCollector returns a collector of metrics of conns, named hubcloud_streams_…
func NewCollector(conns ...*Conns) prometheus.Collector {
	var all []*nats.Conn
	for _, some := range conns {
		all = append(all, some.All()...)
	}
	return telemetry.NewCollector("streams", func(gauge, counter telemetry.Sample) {
		var up, reconnects, in, out float64
		for _, nc := range all {
			if nc.IsConnected() {
				up++
			}
			stats := nc.Stats()
			reconnects += float64(stats.Reconnects)
			in += float64(stats.InBytes)
			out += float64(stats.OutBytes)
		}
		gauge("connections_up", "The service's own connections to the broker that are up.", up)
		gauge("connections_down", "The service's own connections to the broker that are lost and reconnecting. "+
			"More than 0 for long means that the broker is down.", float64(len(all))-up)
		counter("reconnects_total", "Reconnects of the service's own connections to the broker.", reconnects)
		counter("received_bytes_total", "Bytes that the service received from the broker.", in)
		counter("sent_bytes_total", "Bytes sent to the broker.", out)
	})
}
