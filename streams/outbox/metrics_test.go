package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// TestMetrics checks the counters of outcomes and failures.
func TestMetrics(t *testing.T) {
	t.Parallel()
	conns, cfg, registry := streamstest.Start(t), quick(), prometheus.NewPedanticRegistry()
	cfg.Metrics = registry
	o := open(t, conns, cfg)
	value := func(name string, labels ...string) float64 {
		t.Helper()
		return streamstest.MetricValue(t, registry, "hubcloud_outbox_"+name, labels...)
	}
	for _, label := range []string{
		"queued", "delivered", "rejected", "expired", "obsolete", "replaced",
	} {
		if got := value("mails_total", "outcome", label); got != 0 {
			t.Errorf("%s: got %v at the start, want 0", label, got)
		}
	}
	man := newPostman(func(mail string, try int) error {
		switch {
		case mail == "bad":
			return fmt.Errorf("%w: no such user", outbox.ErrRejected)
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
	if err := o.Put(t.Context(), mail("late", -time.Second, []byte("late"))); err != nil {
		t.Fatal(err)
	}
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	for label, want := range map[string]float64{
		"queued": 5, "delivered": 2, "rejected": 1, "expired": 1, "obsolete": 1,
	} {
		if got := value("mails_total", "outcome", label); got != want {
			t.Errorf("%s: got %v, want %v", label, got, want)
		}
	}
	mail := value("failures_total", "cause", "mail")
	server := value("failures_total", "cause", "server")
	tries := value("delivery_duration_seconds")
	if mail != 1 ||
		server != 1 ||
		tries != 6 {
		t.Errorf("got %v and %v failures in %v tries, want 1, 1 and 6", mail, server, tries)
	}
}
