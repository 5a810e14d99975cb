package portal_test

import (
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// Each step of signing in and each forged form is counted.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	w := newBackend(t)
	b := w.open(t, func(c *portal.Config) { c.Metrics = registry })
	b.signIn(olga)
	b.post("/portal/sign-out", 303)
	b.post("/portal/sign-in/nonsense", 410)
	b.signIn(olga)
	if response, _ := b.do("POST", "/portal/sign-out", url.Values{
		"form_token": {"stolen"},
	}, nil); response.StatusCode != 403 {
		t.Errorf("forged form: got %d, want 403", response.StatusCode)
	}
	for range 5 {
		b.post("/portal/sign-in", 200, "email", "nemo@example.org")
	}
	b.post("/portal/sign-in", 429, "email", "nemo@example.org")
	for step, want := range map[string]float64{
		"asked": 7, "limited": 1, "signed_in": 2, "expired": 1, "signed_out": 1,
	} {
		got := streamstest.MetricValue(t, registry, "hubcloud_portal_sign_ins_total", "step", step)
		if got != want {
			t.Errorf("sign-ins in step %s: got %v, want %v", step, got, want)
		}
	}
	if got := streamstest.MetricValue(t, registry, "hubcloud_portal_forged_forms_total"); got != 1 {
		t.Errorf("got %v forged forms, want 1", got)
	}
}
