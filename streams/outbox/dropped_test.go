package outbox_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// TestDroppedMails checks that mails which cannot be delivered are dropped after one try, logged
// and counted, and stop no other mail: a rejected and an obsolete one, a foreign message, and one
// that expires long before its next try.
func TestDroppedMails(t *testing.T) {
	t.Parallel()
	conns, log, registry := streamstest.Start(t), &lines{}, prometheus.NewPedanticRegistry()
	cfg := quick()
	cfg.FirstPause, cfg.MaxPause = time.Hour, time.Hour
	cfg.Metrics, cfg.Logger = registry, slog.New(slog.NewTextHandler(log, nil))
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
			return fmt.Errorf("%w: no such user here", outbox.ErrRejected)
		case mail == "old":
			return fmt.Errorf("%w: revoked", outbox.ErrObsolete)
		case mail == "late":
			return errors.New("mailbox is busy")
		case mail == "good" && try == 1:
			return fmt.Errorf("%w: connection refused", outbox.ErrUnreachable)
		}
		return nil
	})
	streamstest.Must(t, conns.Cloud.Publish("mail.ordinary.x.y", []byte("?")))
	put(t, o, "bad", "old", "good")
	for id, life := range map[string]time.Duration{"late": 3 * time.Second, "gone": -time.Second} {
		streamstest.Must(t, o.Put(t.Context(), mail(id, life, []byte(id))))
	}
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"good×1"}) {
		t.Errorf("delivered %v, want the good mail", got)
	}
	for id, words := range map[string][]string{
		"bad":  {"level=ERROR", "mail_id=bad", "no such user here"},
		"old":  {"level=INFO", "mail_id=old", "revoked"},
		"late": {"level=ERROR", "mail_id=late", "in time"},
		"?":    {"level=ERROR", "unreadable"},
	} {
		if got := log.having(words...); len(got) != 1 || id != "?" && man.tried(id) != 1 {
			t.Errorf("mail %s: %d tries and %d log lines with %q, want one: %s", id, man.tried(id),
				len(got), words, log.text.String())
		}
	}
	for label, want := range map[string]float64{
		"queued": 5, "delivered": 1, "rejected": 2, "expired": 2, "obsolete": 1,
	} {
		if got := value("mails_total", "outcome", label); got != want {
			t.Errorf("%s: got %v, want %v", label, got, want)
		}
	}
	mail := value("failures_total", "cause", "mail")
	server := value("failures_total", "cause", "server")
	if tries := value("delivery_duration_seconds"); mail != 1 || server != 1 || tries != 5 {
		t.Errorf("got %v and %v failures in %v tries, want 1, 1 and 5", mail, server, tries)
	}
}
