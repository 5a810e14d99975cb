package broker

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the server's own counts when it is asked.
type collector struct {
	broker *Server

	connections, undecidedClosed, slow, stalled, stale, subscriptions *prometheus.Desc
	storage, storageLimit, memory, messages, streams, apiRequests     *prometheus.Desc
	apiErrors, apiInflight                                            *prometheus.Desc
	diskFree, diskReserve, diskLow, storeFailed, restarts             *prometheus.Desc
	diskFreeFiles, diskReserveFiles                                   *prometheus.Desc
}

func newCollector(s *Server) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("hubcloud_broker_"+name, help, nil, nil)
	}
	return &collector{
		broker: s,
		connections: desc(
			"connections",
			"Connections to the broker, of hubs and of the service. A sudden fall is a network, "+
				"or a certificate, that hubs have lost.",
		),
		undecidedClosed: desc(
			"undecided_closed_total",
			"Connections closed before they had logged in, because such connections left too little of "+
				"--broker-connections to new ones. Any rise is somebody who opens connections to "+
				"the broker's ports and says nothing, or a bound that is too low.",
		),
		subscriptions: desc(
			"subscriptions", "Subscriptions that the broker holds; each hub has two.",
		),
		slow: desc(
			"slow_consumers_total",
			"Connections that did not read what they were sent and were cut off. Any rise is a "+
				"machine that is too slow for its load.",
		),
		stalled: desc(
			"stalled_clients_total",
			"Times that a sender was held up because a receiver did not read fast enough.",
		),
		stale: desc(
			"stale_connections_total",
			"Connections closed because they answered no pings: hubs whose network has gone.",
		),
		storage: desc("storage_bytes", "Bytes that streams hold on disk."),
		storageLimit: desc(
			"storage_limit_bytes",
			"Bytes that streams may hold on disk: the size of the file system. The reserve ends storing before.",
		),
		memory:      desc("memory_storage_bytes", "Bytes of streams that are kept in memory."),
		messages:    desc("messages", "Messages that all streams hold."),
		streams:     desc("streams", "Streams, of hub logs and others."),
		apiRequests: desc("api_requests_total", "Requests to the broker's stream API."),
		apiErrors:   desc("api_errors_total", "Requests to the broker's stream API that it refused."),
		diskFree: desc(
			"disk_free_bytes", "Bytes that are free on the file system of the data directory.",
		),
		diskReserve: desc("disk_reserve_bytes", "Bytes that are kept free there (--disk-reserve)."),
		diskLow: desc(
			"disk_low",
			"Whether less than the reserve is free, in bytes or in files: 1 while hub events, "+
				"changes and commands are rejected.",
		),
		diskFreeFiles: desc(
			"disk_free_files",
			"Files (inodes) that can still be made on the file system of the data directory; not "+
				"there where it has no such limit.",
		),
		diskReserveFiles: desc(
			"disk_reserve_files", "Files that are kept free there: 5 %, at most 4096.",
		),
		storeFailed: desc(
			"store_failed",
			"Whether the broker cannot write to its disk: 1 until it was restarted, which needs room.",
		),
		restarts: desc(
			"restarts_total",
			"Restarts of the broker inside the process after it could not write to its disk.",
		),
		apiInflight: desc(
			"api_inflight",
			"Requests to the broker's stream API under way. One that stays high is a broker that does not keep up.",
		),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector. After the server's end only the counts that outlive it
// are there, and between two runs only those of the disk.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	counter := func(desc *prometheus.Desc, value float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value)
	}
	gauge(c.storeFailed, boolean(c.broker.faults.failed()))
	counter(c.restarts, float64(c.broker.faults.restarts.Load()))
	if space := c.broker.cfg.Space.State(); space.Size > 0 {
		gauge(c.diskFree, float64(space.Free))
		gauge(c.diskReserve, float64(space.Reserve))
		gauge(c.diskLow, boolean(space.Low))
		if space.Files > 0 {
			gauge(c.diskFreeFiles, float64(space.FreeFiles))
			gauge(c.diskReserveFiles, float64(space.FilesReserve))
		}
	}
	counter(c.undecidedClosed, float64(c.broker.undecidedClosed.Load()))
	now := c.broker.current.Load()
	if now == nil {
		return
	}
	gauge(c.connections, float64(now.server.NumClients()))
	gauge(c.subscriptions, float64(now.server.NumSubscriptions()))
	counter(c.slow, float64(now.server.NumSlowConsumers()))
	counter(c.stalled, float64(now.server.NumStalledClients()))
	counter(c.stale, float64(now.server.NumStaleConnections()))
	info, err := now.server.Jsz(nil)
	if err != nil || info.Disabled {
		return
	}
	gauge(c.storage, float64(info.Store))
	gauge(c.storageLimit, float64(info.Config.MaxStore))
	gauge(c.memory, float64(info.Memory))
	gauge(c.messages, float64(info.Messages))
	gauge(c.streams, float64(info.Streams))
	counter(c.apiRequests, float64(info.API.Total))
	counter(c.apiErrors, float64(info.API.Errors))
	gauge(c.apiInflight, float64(info.API.Inflight))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
