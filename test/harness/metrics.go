package harness

import (
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hubcloud/streams/telemetry/telemetrytest"
)

// Metrics is one scrape of a service, by family.
type Metrics map[string]*dto.MetricFamily

// Metrics scrapes the service.
func (s *Service) Metrics() Metrics {
	s.t.Helper()
	answer, err := http.Get("http://" + s.Admin + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		s.t.Fatalf("the metrics cannot be read: %v", err)
	}
	return families
}

// Value gives the sum of the series of a family that have the labels, as telemetrytest.Sum does. A
// family that is not there fails the test.
func (m Metrics) Value(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	family, ok := m[name]
	if !ok {
		t.Fatalf("there is no metric %s", name)
	}
	// a series that is not there yet has counted nothing
	sum, _ := telemetrytest.Sum(family, labels...)
	return sum
}
