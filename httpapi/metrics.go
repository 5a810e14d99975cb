package httpapi

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics is what the package counts. Routes and methods are labelled as the table of routes has them, never as a client wrote them.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  prometheus.Gauge
	events   prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_requests_total",
			Help: "Requests answered, by route, method and status; 499 stands for clients that did not wait for the answer.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "hubcloud_httpapi_request_duration_seconds",
			Help:    "Time from a request's header to the end of its answer; event streams last as long as their client wants.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"route", "method"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_httpapi_streams",
			Help: "Event streams that are open.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_httpapi_stream_events_total",
			Help: "Events written to event streams, counted for each reader.",
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.duration, m.streams, m.events)
	}
	return m
}

// routeMetrics counts one route. The counters of its statuses are looked up once each.
type routeMetrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Observer
	byStatus sync.Map // int to prometheus.Counter
}

func (m *metrics) route(method, pattern string) *routeMetrics {
	labels := prometheus.Labels{"route": pattern, "method": method}
	return &routeMetrics{
		requests: m.requests.MustCurryWith(labels),
		duration: m.duration.With(labels),
	}
}

func (m *routeMetrics) observe(status int, took time.Duration) {
	counter, ok := m.byStatus.Load(status)
	if !ok {
		counter, _ = m.byStatus.LoadOrStore(status, m.requests.WithLabelValues(strconv.Itoa(status)))
	}
	counter.(prometheus.Counter).Inc()
	m.duration.Observe(took.Seconds())
}
