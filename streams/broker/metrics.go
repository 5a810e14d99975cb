package broker

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// newCollector returns a collector that reads the servers' counters. While no server runs, it collects only the
// counters that do not come from the servers. The others are sums over both servers.
func newCollector(s *Server) prometheus.Collector { return telemetry.NewCollector("broker", s.collect) }

func (s *Server) collect(gauge, counter telemetry.Sample) {
	gauge("store_failed", "1 from a failed write to the disk until the broker has restarted, which needs free "+
		"space.", boolean(s.faults.failed()))
	counter("restarts_total", "Restarts of the broker in the process after failed writes to the disk.",
		float64(s.faults.restarts.Load()))
	if space := s.cfg.Space.State(); space.Size > 0 {
		gauge("disk_free_bytes", "Free bytes on the file system of the data directory.", float64(space.Free))
		gauge("disk_reserve_bytes", "Bytes to keep free on the file system of the data directory (--disk-reserve).",
			float64(space.Reserve))
		gauge("disk_low", "1 while less than the reserve is free, in bytes or files. The service then rejects hub "+
			"events, changes and commands.", boolean(space.Low))
		if space.Files > 0 {
			gauge("disk_free_files", "Files (inodes) that can still be created on the file system of the data "+
				"directory. Absent where the file system has no such limit.", float64(space.FreeFiles))
			gauge("disk_reserve_files", "Files (inodes) to keep free on the file system of the data directory: 5 "+
				"%, at most 4096.", float64(space.FilesReserve))
		}
	}
	counter("pending_closed_total", "Connections closed before they logged in, because too many such connections "+
		"used up the broker's share of open files. A rise means an attack on the broker's ports, or a limit of "+
		"open files that is too low.", float64(s.pendingClosed.Load()))
	now := s.current.Load()
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
	gauge("connections", "Connections to the broker, of hubs and of the service. A sudden fall means a network "+
		"failure or an expired certificate.", connections)
	gauge("subscriptions", "Subscriptions on the broker. Each hub has two.", subscriptions)
	counter("slow_consumers_total", "Connections closed because they did not read fast enough. A rise means that "+
		"the machine is too slow for its load.", slow)
	counter("stalled_clients_total", "Times that a sender was delayed because a receiver did not read fast enough.",
		stalled)
	counter("stale_connections_total", "Connections closed because they did not answer pings, such as hubs "+
		"without a network.", stale)
	if !enabled {
		return
	}
	gauge("storage_bytes", "Bytes of streams on disk.", storage)
	gauge("storage_limit_bytes", "Limit of the bytes of streams on disk: the size of the file system. The service "+
		"stops storing earlier, at --disk-reserve.", storageLimit)
	gauge("memory_storage_bytes", "Bytes of streams in memory.", memory)
	gauge("messages", "Messages in all streams.", messages)
	gauge("streams", "Streams: hub logs and others.", streams)
	counter("api_requests_total", "Requests to the JetStream API.", requests)
	counter("api_errors_total", "Requests to the JetStream API that failed.", failed)
	gauge("api_inflight", "Requests to the JetStream API in progress. A value that stays high means that the "+
		"broker does not keep up.", inflight)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
