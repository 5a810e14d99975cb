package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// Mails about warnings that the mail server did not take filled an organization's part of the
// queue, and kept smoke out of it.
func TestAlarmsWaitForNoOrdinaryMail(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	cfg := quick()
	cfg.PerSender = 10
	o := open(t, conns, cfg)
	putAs := func(id string, alarm bool) error {
		return o.Put(t.Context(), outbox.Mail{
			ID: id, Sender: "mill", Recipient: "olga", Topic: id, Alarm: alarm,
			Expires: time.Now().Add(time.Hour), Content: []byte(id),
		})
	}
	var full error
	for i := 0; full == nil; i++ {
		full = putAs(fmt.Sprint("warning", i), false)
	}
	if !errors.Is(full, outbox.ErrSenderFull) {
		t.Fatalf("put warnings: got %v, want ErrSenderFull", full)
	}
	busy, delivered := make(chan string, 10), make(chan string, 10)
	run(t, o, func(ctx context.Context, content []byte) error {
		if string(content) == "smoke" {
			delivered <- string(content)
			return nil
		}
		busy <- string(content)
		<-ctx.Done() // the mail server does not answer
		return ctx.Err()
	})
	for range 4 { // all deliverers of ordinary mails
		<-busy
	}
	if err := putAs("smoke", true); err != nil {
		t.Fatalf("put an alarm: %v", err)
	}
	select {
	case <-delivered:
	case <-time.After(time.Minute):
		t.Fatal("the alarm was not delivered while ordinary mails are stuck")
	}
}

// An organization with many alarms keeps those of no other out.
func TestAlarmsOfASenderAreLimited(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.PerSender = 3
	o := open(t, streamstest.Start(t), cfg)
	putAs := func(sender string, i int) error {
		id := fmt.Sprint(sender, i)
		return o.Put(t.Context(), outbox.Mail{
			ID: id, Sender: sender, Recipient: id, Alarm: true, Expires: time.Now().Add(time.Hour),
		})
	}
	for i := range 3 {
		if err := putAs("mill", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := putAs("mill", 3); !errors.Is(err, outbox.ErrSenderFull) {
		t.Errorf("the fourth alarm: got %v, want ErrSenderFull", err)
	}
	if err := putAs("quay", 0); err != nil {
		t.Errorf("an alarm of another sender: got %v", err)
	}
}
