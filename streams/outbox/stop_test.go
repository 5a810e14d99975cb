package outbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// TestMailsOutliveTheBroker stops the broker under a Run: mails put before are delivered after its
// return, and delivered mails are not delivered again.
func TestMailsOutliveTheBroker(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	o, held := open(t, conns, quick()), make(chan struct{})
	man := newPostman(func(mail string, _ int) error {
		select {
		case <-held:
			return nil
		default:
		}
		if mail == "held" {
			return errors.New("not yet")
		}
		return nil
	})
	run(t, o, man.deliver)
	put(t, o, "first", "held")
	streamstest.Eventually(
		t, "the first mail is gone",
		func() bool { return waiting(t, conns) == 1 && man.tried("held") > 0 },
	)
	broker.Stop()
	close(held)
	broker.Start(t)
	put(t, o, "later")
	awaitEmpty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"first×1", "held×1", "later×1"}) {
		t.Errorf("delivered %v, want each of three mails once", got)
	}
}

// TestStopLetsDeliveriesEnd checks that an orderly stop repeats no delivery.
func TestStopLetsDeliveriesEnd(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	o, man := open(t, conns, quick()), newPostman(nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	stop := run(t, o, func(ctx context.Context, content []byte) error {
		close(entered)
		select {
		case <-leave:
			return man.deliver(ctx, content)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	put(t, o, "one")
	<-entered
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	close(leave)
	<-stopped
	if n := waiting(t, conns); n != 0 || len(man.delivered()) != 1 {
		t.Errorf(
			"%d mails wait, delivered %v; want none waiting and one delivered", n, man.delivered(),
		)
	}
}

// TestStopCutsOffHangingDeliveries checks that a stop takes Grace, and that the next Run gets the
// mail at once.
func TestStopCutsOffHangingDeliveries(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	o, entered := open(t, conns, quick()), make(chan struct{})
	stop := run(t, o, func(ctx context.Context, _ []byte) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	})
	put(t, o, "one")
	<-entered
	began := time.Now()
	stop()
	if took := time.Since(began); took > outbox.Grace+30*time.Second {
		t.Errorf("the stop took %s, want about %s", took, outbox.Grace)
	}
	man := newPostman(nil)
	run(t, o, man.deliver)
	began = time.Now()
	awaitEmpty(t, conns)
	if took := time.Since(began); took > 30*time.Second || len(man.delivered()) != 1 {
		t.Errorf("delivered %v after %s, want one mail within 30s", man.delivered(), took)
	}
}
