package outbox_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// TestRejectedMailIsDropped checks that only the rejected mail is dropped, at once, and logged.
func TestRejectedMailIsDropped(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	o := open(t, conns, cfg)
	man := newPostman(func(mail string, _ int) error {
		if mail == "bad" {
			return fmt.Errorf("%w: no such user here", outbox.ErrRejected)
		}
		return nil
	})
	put(t, o, "bad", "good")
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"good×1"}) || man.tried("bad") != 1 {
		t.Errorf("delivered %v, tried the rejected mail %d times, want once", got, man.tried("bad"))
	}
	if got := log.having("level=ERROR", "mail_id=bad", "no such user here"); len(got) != 1 {
		t.Errorf("got %d log lines about the mail, want 1: %s", len(got), log.text.String())
	}
}

// TestObsoleteMailIsDropped checks that it is logged as information, not as an error.
func TestObsoleteMailIsDropped(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	o := open(t, conns, cfg)
	man := newPostman(
		func(string, int) error { return fmt.Errorf("%w: revoked", outbox.ErrObsolete) },
	)
	put(t, o, "one")
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got := log.having("level=INFO", "mail_id=one", "revoked"); len(got) != 1 ||
		man.tried("one") != 1 ||
		len(log.having("level=ERROR")) != 0 {
		t.Errorf(
			"tried %d times, want once, with a log line at level info: %s", man.tried("one"),
			log.text.String(),
		)
	}
}

// TestExpiredMailIsDropped checks that a mail is dropped soon after its expiry, also when its next
// try would have been much later, and that this is logged.
func TestExpiredMailIsDropped(t *testing.T) {
	t.Parallel()
	conns, log := streamstest.Start(t), &lines{}
	o := open(
		t,
		conns,
		outbox.Config{
			FirstPause: time.Hour,
			MaxPause:   time.Hour,
			Logger:     slog.New(slog.NewTextHandler(log, nil)),
		},
	)
	if err := o.Put(t.Context(), mail("late", 500*time.Millisecond, []byte("late"))); err != nil {
		t.Fatal(err)
	}
	man := newPostman(func(string, int) error { return errors.New("not now") })
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if man.tried("late") != 1 {
		t.Errorf("tried %d times, want once", man.tried("late"))
	}
	if got := log.having("level=ERROR", "mail_id=late", "in time"); len(got) != 1 {
		t.Errorf("got %d log lines about the mail, want 1: %s", len(got), log.text.String())
	}
}

// TestUnreadableMailIsDropped checks that a foreign message in the stream stops no mail.
func TestUnreadableMailIsDropped(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	o, man := open(t, conns, cfg), newPostman(nil)
	if err := conns.Cloud.Publish("mail.ordinary.x.y", []byte("?")); err != nil {
		t.Fatal(err)
	}
	put(t, o, "one")
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"one×1"}) ||
		len(log.having("level=ERROR", "unreadable")) != 1 {
		t.Errorf("delivered %v, want mail one and an error in the log: %s", got, log.text.String())
	}
}
