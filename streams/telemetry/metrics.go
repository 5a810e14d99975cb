package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics makes the metrics of a package. Its methods panic if a metric of the name is registered already.
type Metrics struct {
	auto   promauto.Factory
	prefix string
}

// NewMetrics returns what makes metrics whose names begin with hubcloud_<prefix>_, and registers them with r, unless r
// is nil.
func NewMetrics(r prometheus.Registerer, prefix string) Metrics {
	return Metrics{auto: promauto.With(r), prefix: "hubcloud_" + prefix + "_"}
}

// Counter makes a counter.
func (m Metrics) Counter(name, help string) prometheus.Counter {
	return m.auto.NewCounter(prometheus.CounterOpts{Name: m.prefix + name, Help: help})
}

// Counters makes counters by one label. Those of values exist from the start, so that their first increment shows in a
// rate.
func (m Metrics) Counters(name, help, label string, values ...string) *prometheus.CounterVec {
	vector := m.auto.NewCounterVec(prometheus.CounterOpts{Name: m.prefix + name, Help: help}, []string{label})
	for _, value := range values {
		vector.WithLabelValues(value)
	}
	return vector
}

// Gauge makes a gauge.
func (m Metrics) Gauge(name, help string) prometheus.Gauge {
	return m.auto.NewGauge(prometheus.GaugeOpts{Name: m.prefix + name, Help: help})
}

// GaugeFunc makes a gauge whose value is asked for when metrics are collected.
func (m Metrics) GaugeFunc(name, help string, value func() float64) {
	m.auto.NewGaugeFunc(prometheus.GaugeOpts{Name: m.prefix + name, Help: help}, value)
}

// Gauges makes gauges by one label. Those of values exist from the start.
func (m Metrics) Gauges(name, help, label string, values ...string) *prometheus.GaugeVec {
	vector := m.auto.NewGaugeVec(prometheus.GaugeOpts{Name: m.prefix + name, Help: help}, []string{label})
	for _, value := range values {
		vector.WithLabelValues(value)
	}
	return vector
}

// Histogram makes a histogram whose buckets end at the given bounds.
func (m Metrics) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return m.auto.NewHistogram(prometheus.HistogramOpts{Name: m.prefix + name, Help: help, Buckets: buckets})
}

// Histograms makes histograms by some labels.
func (m Metrics) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return m.auto.NewHistogramVec(prometheus.HistogramOpts{Name: m.prefix + name, Help: help, Buckets: buckets}, labels)
}

// Values returns the texts of labels.
func Values[T ~string](all []T) []string {
	values := make([]string, len(all))
	for i, value := range all {
		values[i] = string(value)
	}
	return values
}

// Sample passes on the value of a metric when metrics are collected.
type Sample func(name, help string, value float64)

// collector is what NewCollector returns.
type collector struct {
	prefix  string
	collect func(gauge, counter Sample)
}

// NewCollector returns a collector of metrics whose names begin with hubcloud_<prefix>_. collect passes on all of
// them, each time that they are collected. It may leave some out.
func NewCollector(prefix string, collect func(gauge, counter Sample)) prometheus.Collector {
	return collector{"hubcloud_" + prefix + "_", collect}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	sample := func(kind prometheus.ValueType) Sample {
		return func(name, help string, value float64) {
			ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(c.prefix+name, help, nil, nil), kind, value)
		}
	}
	c.collect(sample(prometheus.GaugeValue), sample(prometheus.CounterValue))
}
