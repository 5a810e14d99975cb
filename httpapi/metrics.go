package httpapi

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what the package counts. Routes and methods are labelled as the table of routes has
// them, never as a client wrote them.
type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	limited   limitedCounters
	inFlight  prometheus.Gauge
	streams   prometheus.Gauge
	longPolls prometheus.Gauge
	answers   prometheus.Gauge
	events    prometheus.Counter
	ended     map[string]prometheus.Counter

	connections connectionMetrics
}

// connectionMetrics counts connections, and those that were closed while idle or refused, by which
// bound they had met.
type connectionMetrics struct {
	open    prometheus.Gauge
	evicted struct{ address, all, files prometheus.Counter }
	refused struct{ address, all prometheus.Counter }
}

func newConnectionMetrics(registerer prometheus.Registerer) connectionMetrics {
	evicted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_httpapi_connections_evicted_total",
		Help: "Idle connections closed to make room, by what had run out: connections of one " +
			"address, connections in all, or open files. A rise of " +
			"`all` is more clients than `--connections` lets in, or somebody who holds " +
			"connections from many addresses.",
	}, []string{"bound"})
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_httpapi_connections_refused_total",
		Help: "Connections refused because all others were busy, by what had run out: " +
			"connections of one address, or connections in all.",
	}, []string{"bound"})
	m := connectionMetrics{open: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hubcloud_httpapi_connections",
		Help: "Connections of API clients that are open, idle ones among them.",
	})}
	m.evicted.address, m.evicted.all, m.evicted.files = evicted.WithLabelValues(
		"address",
	), evicted.WithLabelValues("all"), evicted.WithLabelValues("files")
	m.refused.address, m.refused.all = refused.WithLabelValues("address"), refused.WithLabelValues("all")
	if registerer != nil {
		registerer.MustRegister(m.open, evicted, refused)
	}
	return m
}

// limitedCounters counts refusals for want of allowance, by what had used it up.
type limitedCounters struct{ key, address, open, answers prometheus.Counter }

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
		Help: "Requests refused with 429, by what had used up its allowance: an API key, a " +
			"client's address, the streams and " +
			"reads that one key may have open, or the memory for answers, which is also refused " +
			"with 503. A rise of `key` is a client that asks too often, " +
			"of `address` one that tries keys, of `answers` one that does not read what it asked for.",
	}, []string{"allowance"})
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_httpapi_streams_ended_total",
		Help: "Event streams that have ended, by reason. `fault` is an error of the service; a " +
			"rise of `cursor_expired` is clients that " +
			"read more slowly than hubs write.",
	}, []string{"reason"})
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_requests_total",
			Help: "Requests answered, by route, method and status; 499 stands for clients that " +
				"did not wait for the answer. " +
				"500 is a fault of the service, 502 to 504 one of a hub.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hubcloud_httpapi_request_duration_seconds",
			Help: "Seconds from a request's header to the end of its answer; event streams and " +
				"waiting reads last as long as their client wants.",
			// From a page in memory to the longest that a hub may take; what is held longer falls
			// beyond.
			Buckets: []float64{
				.0005,
				.001,
				.0025,
				.005,
				.01,
				.025,
				.05,
				.1,
				.25,
				.5,
				1,
				2.5,
				5,
				10,
				30,
				60,
			},
		}, []string{"route", "method"}),
		limited: limitedCounters{
			key: limited.WithLabelValues(
				"key",
			), address: limited.WithLabelValues("address"), open: limited.WithLabelValues("open"),
			answers: limited.WithLabelValues("answers"),
		},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_httpapi_requests_in_flight",
			Help: "Requests that are being answered, streams and waiting reads among them. One " +
				"that grows while requests do not is a service " +
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
		answers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_httpapi_answer_bytes",
			Help: "Bytes of answers that are on their way to clients. One that stays near " +
				"`--answer-memory` is clients that do not read.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_stream_events_total",
			Help: "Events written to event streams, counted for each reader.",
		}),
		ended: map[string]prometheus.Counter{},

		connections: newConnectionMetrics(registerer),
	}
	for _, reason := range []string{
		endedByClient, endedByDraining, endedByRevoking, endedByLifetime, endedByExpiry,
		endedByRelease, endedByBroker, endedByFault,
	} {
		m.ended[reason] = ended.WithLabelValues(reason)
	}
	if registerer != nil {
		registerer.MustRegister(
			m.requests, m.duration, limited, m.inFlight, m.streams, m.longPolls, m.answers,
			m.events, ended,
		)
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

// route makes the metrics of a route. What it refuses and fails with begins at 0, so that the first
// of a kind shows in a rate; how it answers otherwise is its own, and begins with the first answer.
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
	if rt.live && rt.access == forKey {
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
