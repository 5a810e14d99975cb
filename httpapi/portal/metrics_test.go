package portal_test

import (
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/httpapi/portal"
)

// TestMetrics: each step of signing in is counted, and forms of others.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	w := newWorld()
	b := w.visit(t, func(c *portal.Config) { c.Metrics = registry })
	b.signIn("olga@example.org")
	b.post("/portal/sign-out", 303)
	b.post("/portal/sign-in/nonsense", 410)
	b.signIn("olga@example.org")
	if response, _ := b.do("POST", "/portal/sign-out", url.Values{"form_token": {"stolen"}}, nil); response.StatusCode != 403 {
		t.Errorf("a forged form: %d", response.StatusCode)
	}
	for range 5 {
		b.post("/portal/sign-in", 200, "email", "nemo@example.org")
	}
	b.post("/portal/sign-in", 429, "email", "nemo@example.org")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			if len(metric.GetLabel()) > 0 {
				name = metric.GetLabel()[0].GetValue()
			}
			got[name] = metric.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"asked": 7, "limited": 1, "signed_in": 2, "expired": 1, "signed_out": 1, "hubcloud_portal_forged_forms_total": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}
