package httpapi

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hubcloud/streams/telemetry"
)

// metrics holds the package's metrics. Labels of routes and methods come from the routing table,
// never from a client.
type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	limited   limitedCounters
	inFlight  prometheus.Gauge
	streams   prometheus.Gauge
	longPolls prometheus.Gauge
	events    prometheus.Counter
	ended     map[string]prometheus.Counter

	connections connectionMetrics
}

// connectionMetrics counts open connections, and evicted and rejected ones by the bound that was
// reached.
type connectionMetrics struct {
	open     prometheus.Gauge
	evicted  struct{ address, all, files prometheus.Counter }
	rejected struct{ address, all prometheus.Counter }
	// handshakeErrors counts TLS handshakes that failed.
	handshakeErrors prometheus.Counter
}

func newConnectionMetrics(registerer prometheus.Registerer) connectionMetrics {
	metric := telemetry.NewMetrics(registerer, "httpapi")
	evicted := metric.Counters("connections_evicted_total", "Idle connections closed to admit another, by the "+
		"limit that was reached: connections of one address, connections in all, or open files. A rise of `all` "+
		"means more clients than `--connections` admits, or a client that holds connections from many addresses.",
		"bound")
	rejected := metric.Counters("connections_refused_total", "Connections rejected because all others were busy, "+
		"by the limit that was reached: connections of one address, or connections in all.", "bound")
	m := connectionMetrics{open: metric.Gauge("connections", "Open connections of API clients, including idle "+
		"ones.")}
	m.handshakeErrors = metric.Counter("tls_handshake_errors_total", "TLS handshakes of API clients that failed "+
		"or took more than ten seconds. A rise means clients that do not trust the certificate, or that ask for "+
		"other names.")
	m.evicted.address = evicted.WithLabelValues("address")
	m.evicted.all = evicted.WithLabelValues("all")
	m.evicted.files = evicted.WithLabelValues("files")
	m.rejected.address = rejected.WithLabelValues("address")
	m.rejected.all = rejected.WithLabelValues("all")
	return m
}

// limitedCounters counts requests rejected by a limit, by the limit.
type limitedCounters struct{ key, address, open, answers prometheus.Counter }

// Reasons why an event stream ended, in the log and as a label.
const (
	endedByClient   = "client"
	endedByDraining = "draining"
	endedByRevoking = "key_revoked"
	endedByLifetime = "lifetime"
	endedByExpiry   = "cursor_expired"
	endedByRelease  = "hub_released"
	endedByBroker   = "broker_lost"
	endedByFault    = "fault"
)

func newMetrics(registerer prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(registerer, "httpapi")
	limited := metric.Counters("rate_limited_total", "Requests rejected with 429, by the limit: the rate of an "+
		"API key, the rate of a client's address, the streams and reads that one key may have open, or the "+
		"response memory, which can also reject with 503. A rise of `key` means a client that sends too many "+
		"requests; of `address`, one that guesses keys; of `answers`, one that does not read its responses.",
		"allowance")
	ended := metric.Counters("streams_ended_total", "Event streams that have ended, by reason. `fault` is an "+
		"error of the service; a rise of `cursor_expired` means clients that read more slowly than hubs write.",
		"reason")
	m := &metrics{
		requests: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_requests_total",
			Help: "Requests answered, by route, method and status. 499 means that the client " +
				"disconnected before the response, 500 a fault of the service, 502 to 504 a " +
				"fault of a hub.",
		}, []string{"route", "method", "code"}),
		// From a page in memory to the longest call to a hub.
		duration: metric.Histograms("request_duration_seconds", "Seconds from a request's header to the end of "+
			"its response. Event streams and long polls last as long as their clients keep them open.",
			append(telemetry.LatencyBuckets(.0005, 10), 30, 60), "route", "method"),
		limited: limitedCounters{
			key:     limited.WithLabelValues("key"),
			address: limited.WithLabelValues("address"),
			open:    limited.WithLabelValues("open"),
			answers: limited.WithLabelValues("answers"),
		},
		inFlight: metric.Gauge("requests_in_flight", "Requests in progress, including streams and long polls. A "+
			"rise at an unchanged rate of requests means that requests wait: for hubs, the broker or the database."),
		streams:   metric.Gauge("streams", "Open event streams."),
		longPolls: metric.Gauge("long_polls", "Long polls: reads of events that wait for the next event."),
		events:    metric.Counter("stream_events_total", "Events sent on event streams, counted for each stream."),
		ended:     map[string]prometheus.Counter{},

		connections: newConnectionMetrics(registerer),
	}
	for _, reason := range []string{
		endedByClient, endedByDraining, endedByRevoking, endedByLifetime, endedByExpiry,
		endedByRelease, endedByBroker, endedByFault,
	} {
		m.ended[reason] = ended.WithLabelValues(reason)
	}
	return m
}

// routeMetrics counts the requests of one route. Each status's counter is looked up once.
type routeMetrics struct {
	requests *prometheus.CounterVec
	// duration is nil for routes that only answer errors.
	duration prometheus.Observer
	byStatus sync.Map // int to prometheus.Counter
}

// route returns the metrics of a route. Counters of failures exist from the start, with the value
// 0, so that a rate shows the first failure.
func (m *metrics) route(rt *route) *routeMetrics {
	labels := prometheus.Labels{"route": rt.pattern, "method": rt.method}
	counted := &routeMetrics{requests: m.requests.MustCurryWith(labels)}
	if rt.method != methodOther && rt.method != methodAny {
		counted.duration = m.duration.With(labels)
	}
	failures := []int{http.StatusInternalServerError}
	switch rt.access {
	case forKey:
		failures = append(
			failures, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
		)
	case forAddress:
		failures = append(failures, http.StatusTooManyRequests)
	}
	if rt.asksHub && rt.access == forKey {
		failures = append(
			failures, http.StatusBadGateway, http.StatusServiceUnavailable,
			http.StatusGatewayTimeout,
		)
	}
	for _, status := range failures {
		counted.counter(status)
	}
	return counted
}

func (m *routeMetrics) observe(status int, took time.Duration) {
	m.counter(status).Inc()
	if m.duration != nil {
		m.duration.Observe(took.Seconds())
	}
}

func (m *routeMetrics) counter(status int) prometheus.Counter {
	counter, ok := m.byStatus.Load(status)
	if !ok {
		counter, _ = m.byStatus.LoadOrStore(
			status, m.requests.WithLabelValues(strconv.Itoa(status)),
		)
	}
	return counter.(prometheus.Counter)
}
