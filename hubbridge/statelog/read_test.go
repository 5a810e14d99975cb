package statelog

import (
	"context"
	"errors"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// The state equals the hub's devices after each of the events after which the hub must be asked,
// although the events themselves do not tell what has changed.
func TestHubsAreAsked(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	for id := range int64(40) {
		f.set(id, `true`)
	}
	f.keep()
	f.connected()
	f.await("the state after the connection")
	f.report(1, `false`)
	f.await("the state after a report")

	f.set(2, `"skipped"`)
	f.event(journal.KindCloudEvent, domain.EventHubEventsSkipped, nil, `{"from":1,"to":2}`)
	f.await("the state after skipped events")

	added := int64(99)
	f.set(added, `"new"`)
	f.event(journal.KindHubEvent, "device.added", &added, `{"name":"device 99"}`)
	f.await("the state after a device was added")

	f.mu.Lock()
	after, _ := f.journals.Tip(hubA)
	f.epoch = domain.Epoch{ID: domain.NewEpochID(2), After: after.Seq}
	f.values = map[int64]string{1: `"after the reset"`}
	f.mu.Unlock()
	f.await("the state after a reset without any event")
	if f.most != 1 {
		t.Errorf("%d requests to the hub at the same time, want 1", f.most)
	}
}

// A hub that has just been asked is asked again at once when it was reset, though its log has no
// event of the new epoch, and no more often than MinInterval otherwise.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.cfg.MinInterval = time.Hour
	f.set(1, `"before"`)
	f.keep()
	f.connected()
	f.await("the state after the connection")
	// Regression: the second of two events within MinInterval made the Keeper forget it.
	for range 3 {
		f.connected()
	}
	f.mu.Lock()
	lists := f.lists
	after, _ := f.journals.Tip(hubA)
	f.epoch = domain.Epoch{ID: domain.NewEpochID(2), After: after.Seq}
	f.values = map[int64]string{2: `"after the reset"`}
	f.mu.Unlock()
	f.await("the state after a reset")
	f.mu.Lock()
	defer f.mu.Unlock()
	if lists != 1 || f.lists != 2 {
		t.Errorf("asked %d times before the reset and %d after it, want 1 and 2", lists, f.lists)
	}
}

// Regression: the channels of a device that had just joined, and those that it got while it was
// interviewed, were known only a minute after the last read of the hub.
func TestDeviceIsAskedForSoon(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.cfg.MinInterval = time.Hour
	f.set(1, `true`)
	f.keep()
	f.connected()
	f.await("the state after the connection")
	added := int64(99)
	for _, typ := range []string{"device.added", "device.updated", "device.updated"} {
		f.set(added, `"`+typ+`"`)
		f.event(journal.KindHubEvent, typ, &added, `{"name":"device 99","removed_channels":[]}`)
		f.await("the state after " + typ)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists != 1 || f.most != 1 {
		t.Errorf("asked for all devices %d times, with %d requests at once, want 1 and 1",
			f.lists, f.most)
	}
}

// An event that is stored while a hub is asked is newer than the answer and must win.
func TestEventsDuringARead(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.set(1, `"old"`)
	asked, reported := make(chan struct{}), make(chan struct{})
	first := true
	f.answer = func(_ context.Context, device int64) error {
		if device == 1 && first {
			first = false
			close(asked) // the answer is made already
			<-reported
		}
		return nil
	}
	f.keep()
	f.connected()
	<-asked
	f.report(1, `"new"`)
	close(reported)
	streamstest.Eventually(t, "the answer is stored", func() bool {
		reads, _ := f.states()
		return reads > 0
	})
	if d := f.now().Device(1); d == nil || string(d.Channel("switch", 0).Value) != `"new"` {
		t.Errorf("the state has %+v, want the value of the event", d)
	}
}

// Devices that do not answer, and answers that are not valid, leave the state in doubt. The hub is
// asked again until it answers.
func TestFailingHubs(t *testing.T) {
	t.Parallel()
	for _, code := range []domain.Code{
		domain.CodeHubTimeout, domain.CodeHubUnavailable, domain.CodeHubError,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			f := start(t, time.Hour)
			for id := range int64(5) {
				f.set(id, `1`)
			}
			failing := true
			f.answer = func(_ context.Context, device int64) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				if failing && device == 3 {
					return domain.Errorf(code, "no answer")
				}
				return nil
			}
			f.keep()
			f.connected()
			streamstest.Eventually(t, "the other devices are stored", func() bool {
				return len(f.now().Devices) == 4
			})
			if f.now().Certain() {
				t.Error("the state is certain without an answer of each device")
			}
			f.mu.Lock()
			failing = false
			faults := len(f.faults)
			f.mu.Unlock()
			if (faults > 0) != (code == domain.CodeHubError) {
				t.Errorf("%d faults of the hub after %s", faults, code)
			}
			f.await("the state once all devices answer")
		})
	}
}

// A hub that disconnects while it is asked is not asked again before it connects.
func TestHubGoesOffline(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.set(1, `1`)
	failed := make(chan struct{}, 10)
	f.answer = func(context.Context, int64) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.online {
			return nil
		}
		failed <- struct{}{}
		return domain.Errorf(domain.CodeHubOffline, "offline")
	}
	f.online = false
	f.keep()
	f.connected() // the view of presence is behind, or the hub is gone again
	<-failed
	f.mu.Lock()
	f.online = true
	f.mu.Unlock()
	f.connected()
	f.await("the state after the second connection")
}

// A Keeper that begins to serve a hub asks it unless the log has the answer: a crash between the
// answer and its storage loses nothing.
func TestRestartsAskOnce(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.set(1, `1`)
	asked, crash := make(chan struct{}), errors.New("crash")
	f.answer = func(ctx context.Context, device int64) error {
		if device == 0 {
			return nil
		}
		close(asked)
		<-ctx.Done()
		return crash
	}
	stop := f.keep()
	f.connected()
	<-asked
	stop()
	if reads, _ := f.states(); reads != 0 {
		t.Fatalf("%d reads were stored, want none", reads)
	}
	f.mu.Lock()
	f.answer = nil
	f.mu.Unlock()
	stop = f.keep()
	f.await("the state after a crash")
	stop()
	f.mu.Lock()
	lists := f.lists
	f.mu.Unlock()

	k, err := New(f.cfg)
	streamstest.Must(t, err)
	streamstest.Run(t, "keeper", k.Run)
	streamstest.Eventually(t, "the log is looked at", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.hubs[hubA] != nil && k.hubs[hubA].checkAt.IsZero()
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists != lists {
		t.Errorf("the hub was asked again although the log has the answer")
	}
}

// A hub that an organization has just added is asked at once: it is connected, and need not report
// anything for long. A minute later is too late.
func TestAddedHubIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.cfg.Delay, f.cfg.MinInterval, f.cfg.Settle = time.Hour, time.Hour, time.Hour
	f.set(1, `1`)
	k, err := New(f.cfg)
	streamstest.Must(t, err)
	streamstest.Run(t, "keeper", k.Run)
	k.Added("hub-none-none-none")
	k.Added(hubA)
	f.await("the state after the hub was added")
	k.Added(hubA) // the directory may be read again
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lists != 1 {
		t.Errorf("the hub was asked %d times, want once", f.lists)
	}
}

// Regression: nothing asked a hub again of which something stayed in doubt, such as the outcome of
// a command that the hub had abandoned without a word.
func TestHubsInDoubtAreAsked(t *testing.T) {
	t.Parallel()
	f := start(t, time.Hour)
	f.cfg.DoubtEvery = time.Millisecond
	f.cfg.InDoubt = func(context.Context) ([]domain.HubID, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.inDoubt {
			return []domain.HubID{hubA, "hub-none-none-none"}, nil
		}
		return nil, nil
	}
	f.set(1, `"before"`)
	f.keep()
	f.connected()
	f.await("the state after the connection")
	f.set(1, `"after"`) // without an event
	f.mu.Lock()
	f.inDoubt = true
	f.mu.Unlock()
	f.await("the state of a hub in doubt")
}
