package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hubcloud/cmd/hubcloud/internal/build"
)

// errNoService reports that no service runs on this machine to ask for its metrics.
var errNoService = errors.New("no service runs here")

// scrape reads the metrics of the service on this machine.
func scrape(ctx context.Context, admin string) (map[string]*dto.MetricFamily, error) {
	if admin == "" {
		return nil, errNoService
	}
	response, err := get(ctx, "http://"+admin+"/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answered with status %d", response.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// get sends a request to the service on this machine.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", build.UserAgent())
	client := &http.Client{
		Timeout:   connectTimeout,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	return client.Do(request)
}

// gauge returns the value of a gauge or counter: the one without labels, or the one with the given
// label and value. It returns false when the service has no such metric.
func gauge(families map[string]*dto.MetricFamily, name string, label ...string) (float64, bool) {
	for _, m := range families[name].GetMetric() {
		if !carries(m, label) {
			continue
		}
		switch {
		case m.GetGauge() != nil:
			return m.GetGauge().GetValue(), true
		case m.GetCounter() != nil:
			return m.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

// carries reports whether a metric has a label with a value.
func carries(m *dto.Metric, label []string) bool {
	if len(label) == 0 {
		return true
	}
	for _, pair := range m.GetLabel() {
		if pair.GetName() == label[0] && pair.GetValue() == label[1] {
			return true
		}
	}
	return false
}
