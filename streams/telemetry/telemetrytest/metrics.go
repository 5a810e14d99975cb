// Package telemetrytest reads metrics for tests.
package telemetrytest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// Value gives the sum of the series of a metric that have the labels, given as name and value in
// turn: of a histogram how much it has observed. A metric without such a series fails the test.
func Value(t testing.TB, from prometheus.Gatherer, name string, labels ...string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			sum, found := Sum(family, labels...)
			if !found {
				t.Fatalf("%s has no series %v", name, labels)
			}
			return sum
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// Sum is Value for a family of metrics, and says whether there is such a series.
func Sum(family *dto.MetricFamily, labels ...string) (sum float64, found bool) {
	for _, metric := range family.GetMetric() {
		if hasLabels(metric, labels) {
			found = true
			sum += metric.GetCounter().
				GetValue() +
				metric.GetGauge().
					GetValue() +
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

// Lint fails the test when a metric is not named or described as Prometheus wants it.
func Lint(t testing.TB, from prometheus.Gatherer) {
	t.Helper()
	problems, err := testutil.GatherAndLint(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}
