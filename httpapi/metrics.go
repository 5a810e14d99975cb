package httpapi

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what the package counts. Routes and methods are labelled as the table of routes has them, never as a client wrote them.
type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	limited   limitedCounters
	inFlight  prometheus.Gauge
	streams   prometheus.Gauge
	longPolls prometheus.Gauge
	events    prometheus.Counter
	ended     map[string]prometheus.Counter
}

// limitedCounters counts refusals for want of allowance, by what had used it up.
type limitedCounters struct{ key, address, open prometheus.Counter }

// Why an event stream ended, as the log and the metric say it.
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
	limited := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_httpapi_rate_limited_total",
		Help: "Requests refused with 429, by what had used up its allowance: an API key, a client's address, or the streams and " +
			"waiting reads that one key may have open. A rise of `key` is a client that asks too often, of `address` one that tries keys.",
	}, []string{"allowance"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_httpapi_streams_ended_total",
		Help: "Event streams that have ended, by reason. `fault` is an error of the service; a rise of `cursor_expired` is clients that " +
			"read more slowly than hubs write.",
	}, []string{"reason"})
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_requests_total",
			Help: "Requests answered, by route, method and status; 499 stands for clients that did not wait for the answer. " +
				"500 is a fault of the service, 502 to 504 one of a hub.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hubcloud_httpapi_request_duration_seconds",
			Help: "Seconds from a request's header to the end of its answer; event streams and waiting reads last as long as their client wants.",
			// From a page in memory to the longest that a hub may take; what is held longer falls beyond.
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route", "method"}),
		limited: limitedCounters{
			key: limited.WithLabelValues("key"), address: limited.WithLabelValues("address"), open: limited.WithLabelValues("open"),
		},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_httpapi_requests_in_flight",
			Help: "Requests that are being answered, streams and waiting reads among them. One that grows while requests do not is a service " +
				"that waits for something.",
		}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_httpapi_streams",
			Help: "Event streams that are open.",
		}),
		longPolls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_httpapi_long_polls",
			Help: "Reads of events that wait for one.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_stream_events_total",
			Help: "Events written to event streams, counted for each reader.",
		}),
		ended: map[string]prometheus.Counter{},
	}
	for _, reason := range []string{endedByClient, endedByDraining, endedByRevoking, endedByLifetime, endedByExpiry, endedByRelease, endedByBroker, endedByFault} {
		m.ended[reason] = ended.WithLabelValues(reason)
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.duration, limited, m.inFlight, m.streams, m.longPolls, m.events, ended)
	}
	return m
}

// routeMetrics counts one route. The counters of its statuses are looked up once each.
type routeMetrics struct {
	requests *prometheus.CounterVec
	// duration is nil where there is nothing but refusals: how long those take is of no interest.
	duration prometheus.Observer
	byStatus sync.Map // int to prometheus.Counter
}

// route makes the metrics of a route. What it refuses and fails with begins at 0, so that the first of a kind shows in a rate; how it answers
// otherwise is its own, and begins with the first answer.
func (m *metrics) route(rt *route) *routeMetrics {
	labels := prometheus.Labels{"route": rt.pattern, "method": rt.method}
	counted := &routeMetrics{requests: m.requests.MustCurryWith(labels)}
	if rt.method != methodOther && rt.method != methodAny {
		counted.duration = m.duration.With(labels)
	}
	failures := []int{http.StatusInternalServerError}
	switch rt.access {
	case forKey:
		failures = append(failures, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	case forAddress:
		failures = append(failures, http.StatusTooManyRequests)
	}
	if rt.live && rt.access == forKey {
		failures = append(failures, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
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
		counter, _ = m.byStatus.LoadOrStore(status, m.requests.WithLabelValues(strconv.Itoa(status)))
	}
	return counter.(prometheus.Counter)
}
