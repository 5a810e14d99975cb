package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// Each request has one log line and one count, under its route and never under its path.
func TestObservation(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := start(t, func(c *Config) { c.Metrics = registry })
	last := func() map[string]any {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(s.logged.String()), "\n")
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
			t.Fatalf("log line %q: got %v, want JSON", lines[len(lines)-1], err)
		}
		return line
	}
	a := s.do("GET", eventsPath, "")
	s.client.CloseIdleConnections()
	streamstest.Eventually(
		t, "the request is logged",
		func() bool { return strings.Contains(s.logged.String(), a.Header.Get("X-Request-Id")) },
	)
	line := last()
	key, _ := domain.ParseKey(strings.TrimPrefix(s.bearer, "Bearer "))
	for name, want := range map[string]any{
		"msg": "request", "level": "INFO", "request_id": a.Header.Get("X-Request-Id"),
		"method": "GET", "route": "/v1/hubs/{hub_id}/events",
		"status": 200.0, "bytes": float64(len(a.body)), "key_id": key.ID, "org_id": orgOne,
		"remote": "127.0.0.1",
	} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	s.do("BREW", "/v1/sites", "")
	s.do("GET", "/v1/admin/secrets", "")
	s.do("GET", "/v1/sites", "", "Authorization", "")
	open := s.stream()
	open.block()
	streamstest.Eventually(t, "all requests are counted", func() bool {
		got := samples(t, registry)
		for series, want := range map[string]float64{
			"requests_total code=200 method=GET route=/v1/hubs/{hub_id}/events":  1,
			"requests_total code=405 method=other route=/v1/sites":               1,
			"requests_total code=404 method=any route=/v1/":                      1,
			"requests_total code=401 method=GET route=/v1/sites":                 1,
			"request_duration_seconds method=GET route=/v1/hubs/{hub_id}/events": 1,
			"streams":            1,
			"requests_in_flight": 1,
		} {
			if got[series] != want {
				return false
			}
		}
		return true
	})
	for series := range samples(t, registry) {
		if strings.Contains(series, string(hubOne)) || strings.Contains(series, "secrets") ||
			strings.Contains(series, "BREW") {
			t.Errorf("got series %s, want no label chosen by a client", series)
		}
	}
	if strings.Contains(s.logged.String(), key.Secret) {
		t.Error("got a log with a secret, want none")
	}
}

// samples returns the values of the package's counters and gauges and the counts of its histograms,
// by name and labels.
func samples(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	streamstest.Must(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "hubcloud_httpapi_")
			for _, label := range metric.GetLabel() {
				name += fmt.Sprintf(" %s=%s", label.GetName(), label.GetValue())
			}
			values[name] = metric.GetCounter().
				GetValue() +
				metric.GetGauge().
					GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}
