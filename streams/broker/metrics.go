package broker

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the servers' counters when metrics are collected.
type collector struct {
	broker *Server

	connections, pendingClosed, slow, stalled, stale, subscriptions *prometheus.Desc
	storage, storageLimit, memory, messages, streams, apiRequests   *prometheus.Desc
	apiErrors, apiInflight                                          *prometheus.Desc
	diskFree, diskReserve, diskLow, storeFailed, restarts           *prometheus.Desc
	diskFreeFiles, diskReserveFiles                                 *prometheus.Desc
}

func newCollector(s *Server) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("hubcloud_broker_"+name, help, nil, nil)
	}
	return &collector{
		broker: s,
		connections: desc(
			"connections",
			"Connections to the broker, of hubs and of the service. A sudden fall means a "+
				"network failure or an expired certificate.",
		),
		pendingClosed: desc(
			"pending_closed_total",
			"Connections closed before they logged in, because too many such connections used up "+
				"the broker's share of open files. A rise means an attack on the broker's ports, "+
				"or a limit of open files that is too low.",
		),
		subscriptions: desc("subscriptions", "Subscriptions on the broker. Each hub has two."),
		slow: desc(
			"slow_consumers_total",
			"Connections closed because they did not read fast enough. A rise means that the "+
				"machine is too slow for its load.",
		),
		stalled: desc(
			"stalled_clients_total",
			"Times that a sender was delayed because a receiver did not read fast enough.",
		),
		stale: desc(
			"stale_connections_total",
			"Connections closed because they did not answer pings, such as hubs without a network.",
		),
		storage: desc("storage_bytes", "Bytes of streams on disk."),
		storageLimit: desc(
			"storage_limit_bytes",
			"Limit of the bytes of streams on disk: the size of the file system. The service "+
				"stops storing earlier, at --disk-reserve.",
		),
		memory:      desc("memory_storage_bytes", "Bytes of streams in memory."),
		messages:    desc("messages", "Messages in all streams."),
		streams:     desc("streams", "Streams: hub logs and others."),
		apiRequests: desc("api_requests_total", "Requests to the JetStream API."),
		apiErrors:   desc("api_errors_total", "Requests to the JetStream API that failed."),
		diskFree:    desc("disk_free_bytes", "Free bytes on the file system of the data directory."),
		diskReserve: desc(
			"disk_reserve_bytes",
			"Bytes to keep free on the file system of the data directory (--disk-reserve).",
		),
		diskLow: desc(
			"disk_low",
			"1 while less than the reserve is free, in bytes or files. The service then rejects "+
				"hub events, changes and commands.",
		),
		diskFreeFiles: desc(
			"disk_free_files",
			"Files (inodes) that can still be created on the file system of the data directory. "+
				"Absent where the file system has no such limit.",
		),
		diskReserveFiles: desc(
			"disk_reserve_files",
			"Files (inodes) to keep free on the file system of the data directory: 5 %, at most "+
				"4096.",
		),
		storeFailed: desc(
			"store_failed",
			"1 from a failed write to the disk until the broker has restarted, which needs free "+
				"space.",
		),
		restarts: desc(
			"restarts_total",
			"Restarts of the broker in the process after failed writes to the disk.",
		),
		apiInflight: desc(
			"api_inflight",
			"Requests to the JetStream API in progress. A value that stays high means that the "+
				"broker does not keep up.",
		),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector. While no server runs, it collects only the counters that
// do not come from the servers. The others are sums over both servers.
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
	counter(c.pendingClosed, float64(c.broker.pendingClosed.Load()))
	now := c.broker.current.Load()
	if now == nil {
		return
	}
	var connections, subscriptions, slow, stalled, stale float64
	var storage, storageLimit, memory, messages, streams, requests, failed, inflight float64
	enabled := true
	for _, each := range now.servers() {
		connections += float64(each.NumClients())
		subscriptions += float64(each.NumSubscriptions())
		slow += float64(each.NumSlowConsumers())
		stalled += float64(each.NumStalledClients())
		stale += float64(each.NumStaleConnections())
		info, err := each.Jsz(nil)
		if err != nil || info.Disabled {
			enabled = false
			continue
		}
		storage += float64(info.Store)
		storageLimit = float64(info.Config.MaxStore) // both are on the same file system
		memory += float64(info.Memory)
		messages += float64(info.Messages)
		streams += float64(info.Streams)
		requests += float64(info.API.Total)
		failed += float64(info.API.Errors)
		inflight += float64(info.API.Inflight)
	}
	gauge(c.connections, connections)
	gauge(c.subscriptions, subscriptions)
	counter(c.slow, slow)
	counter(c.stalled, stalled)
	counter(c.stale, stale)
	if !enabled {
		return
	}
	gauge(c.storage, storage)
	gauge(c.storageLimit, storageLimit)
	gauge(c.memory, memory)
	gauge(c.messages, messages)
	gauge(c.streams, streams)
	counter(c.apiRequests, requests)
	counter(c.apiErrors, failed)
	gauge(c.apiInflight, inflight)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
