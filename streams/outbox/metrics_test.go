package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// TestMetrics: what becomes of each mail is counted, and each failure on the way.
func TestMetrics(t *testing.T) {
	t.Parallel()
	conns, cfg, registry := streamstest.Start(t), quick(), prometheus.NewPedanticRegistry()
	cfg.Metrics = registry
	o := open(t, conns, cfg)
	value := func(name, label string) float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() == "hubcloud_outbox_"+name && (label == "" || metric.GetLabel()[0].GetValue() == label) {
					return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
				}
			}
		}
		t.Fatalf("no metric %s %s", name, label)
		return 0
	}
	for _, label := range []string{"queued", "delivered", "refused", "expired", "obsolete"} {
		if got := value("mails_total", label); got != 0 {
			t.Errorf("%s begins at %v", label, got)
		}
	}
	man := newPostman(func(mail string, try int) error {
		switch {
		case mail == "bad":
			return fmt.Errorf("%w: no such user", outbox.ErrRefused)
		case mail == "old":
			return fmt.Errorf("%w: revoked", outbox.ErrObsolete)
		case mail == "busy" && try == 1:
			return errors.New("mailbox is busy")
		case mail == "good" && try == 1:
			return fmt.Errorf("%w: connection refused", outbox.ErrUnreachable)
		}
		return nil
	})
	put(t, o, "bad", "old", "busy", "good")
	if err := o.Put(t.Context(), "late", time.Now().Add(-time.Second), []byte("late")); err != nil {
		t.Fatal(err)
	}
	run(t, o, man.deliver)
	empty(t, conns)
	for label, want := range map[string]float64{"queued": 5, "delivered": 2, "refused": 1, "expired": 1, "obsolete": 1} {
		if got := value("mails_total", label); got != want {
			t.Errorf("%v %s, want %v", got, label, want)
		}
	}
	if mail, server, tries := value("failures_total", "mail"), value("failures_total", "server"), value("delivery_duration_seconds", ""); mail != 1 || server != 1 || tries != 6 {
		t.Errorf("%v and %v failures in %v tries", mail, server, tries)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}
