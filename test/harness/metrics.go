package harness

import (
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hubcloud/streams/streamstest"
)

// Metrics is one scrape of a service, by family.
type Metrics map[string]*dto.MetricFamily

// Metrics scrapes the service.
func (s *Service) Metrics() Metrics {
	s.t.Helper()
	answer, err := http.Get("http://" + s.Admin + "/metrics")
	Must(s.t, err)
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		s.t.Fatalf("parse metrics: %v", err)
	}
	return families
}

// Value returns the sum of a family's series that have the labels, as streamstest.MetricSum does. A
// missing family fails the test.
func (m Metrics) Value(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	family, ok := m[name]
	if !ok {
		t.Fatalf("metric %s: not found", name)
	}
	// a counter's series appears with its first count
	sum, _ := streamstest.MetricSum(family, labels...)
	return sum
}
