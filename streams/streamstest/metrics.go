package streamstest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// MetricValue returns the sum of a metric's series with the given labels (name, value, name, value,
// …). The value of a histogram is its number of observations. MetricValue fails the test if there
// is no such series.
func MetricValue(t testing.TB, from prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			sum, found := MetricSum(family, labels...)
			if !found {
				t.Fatalf("metric %s: no series with labels %v", name, labels)
			}
			return sum
		}
	}
	t.Fatalf("metric %s: not found", name)
	return 0
}

// MetricSum returns the sum of the family's series with the given labels, as MetricValue does, and
// whether there is such a series.
func MetricSum(family *dto.MetricFamily, labels ...string) (sum float64, found bool) {
	for _, metric := range family.GetMetric() {
		if hasLabels(metric, labels) {
			found = true
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return sum, found
}

func hasLabels(metric *dto.Metric, labels []string) bool {
	has := map[string]string{}
	for _, label := range metric.GetLabel() {
		has[label.GetName()] = label.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if has[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
