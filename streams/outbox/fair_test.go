package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// 353 invitations to one address were 353 mails. Now only the newest mail to a recipient about a
// topic is delivered, and no file contains a replaced one.
func TestNewerMailReplacesWaitingMail(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	o, man := open(t, conns, quick()), newPostman(nil)
	const former = "the-secret-of-the-former-mail"
	for _, m := range []outbox.Mail{
		{ID: "1", Sender: "mill", Recipient: "ann", Content: []byte(former)},
		{ID: "2", Sender: "mill", Recipient: "ann", Content: []byte("second")},
		{ID: "3", Sender: "mill", Recipient: "bob", Content: []byte("bob's")},
		{ID: "4", Sender: "quay", Recipient: "ann", Content: []byte("quay's")},
		{ID: "7", Sender: "mill", Recipient: "ann", Topic: "smoke", Content: []byte("old smoke")},
		{ID: "8", Sender: "mill", Recipient: "ann", Topic: "leak", Content: []byte("leak")},
		{ID: "9", Sender: "mill", Recipient: "ann", Topic: "smoke", Content: []byte("smoke")},
		{ID: "5", Recipient: "ann", Urgent: true, Content: []byte(former + "-to-sign-in")},
		{ID: "6", Recipient: "ann", Urgent: true, Content: []byte("newest link")},
		// Put again, as after a lost answer.
		{ID: "2", Sender: "mill", Recipient: "ann", Content: []byte("second")},
	} {
		m.Expires = time.Now().Add(time.Hour)
		streamstest.Must(t, o.Put(t.Context(), m))
	}
	// Of several mails that are put at once, one waits.
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			m := mail(fmt.Sprint("race", n), time.Hour, []byte("race"))
			m.Sender, m.Recipient = "mill", "cid"
			if err := o.Put(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := waiting(t, conns); n != 7 {
		t.Errorf("waiting mails: got %d, want 7", n)
	}
	streamstest.Eventually(
		t, "no file contains a replaced mail",
		func() bool { return !inFiles(t, broker.Dir(), former) },
	)
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got, want := man.delivered(), []string{
		"bob's×1", "leak×1", "newest link×1", "quay's×1", "race×1", "second×1", "smoke×1",
	}; !slices.Equal(got, want) {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// Mails were delivered in the order of their Put, so that sign-in mails waited for thousands of
// mails of one organization.
func TestSenderWithManyMailsDelaysOthersByOne(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	cfg := quick()
	cfg.PerSender = 150
	o := open(t, conns, cfg)
	putAs := func(sender, recipient string, urgent bool) error {
		m := mail(sender+"-"+recipient, time.Hour, []byte(sender))
		m.Sender, m.Recipient, m.Urgent = sender, recipient, urgent
		return o.Put(t.Context(), m)
	}
	for n := range cfg.PerSender {
		streamstest.Must(t, putAs("flood", fmt.Sprint("victim", n), false))
	}
	if err := putAs("flood", "one-more", false); !errors.Is(err, outbox.ErrSenderFull) {
		t.Errorf("put a mail too many: got %v, want ErrSenderFull", err)
	}
	if err := o.HasSpace(t.Context(), "flood", "one-more"); !errors.Is(err, outbox.ErrSenderFull) {
		t.Errorf("space for a mail too many: got %v, want ErrSenderFull", err)
	}
	if err := errors.Join(
		o.HasSpace(t.Context(), "flood", "victim7"), putAs("flood", "victim7", false),
		o.HasSpace(t.Context(), "quiet", "ann"),
	); err != nil {
		t.Errorf("replace a mail of a full sender: %v", err)
	}
	// The mail server accepts one mail at a time, and delays all mails of the flood.
	var mu sync.Mutex
	var order []string
	taken, release := make(chan struct{}, 1000), make(chan struct{})
	run(t, o, func(ctx context.Context, content []byte) error {
		mu.Lock()
		order = append(order, string(content))
		mu.Unlock()
		if string(content) == "flood" {
			taken <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return errors.New("the server is slow")
		}
		return nil
	})
	for range 4 { // every deliverer of ordinary mails is delayed by one of the flood
		<-taken
	}
	streamstest.Must(t, putAs("quiet", "ann", false))
	streamstest.Must(t, putAs("sign-in", "ann", true))
	delivered := func(what string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(order, what)
	}
	streamstest.Eventually(
		t, "the urgent mail is delivered while nothing else is",
		func() bool { return delivered("sign-in") },
	)
	if delivered("quiet") {
		t.Fatal("an ordinary mail was delivered: there are more than 4 deliverers")
	}
	// The process gets the quiet sender's mail behind 150 others before a deliverer is free.
	streamstest.Eventually(
		t, "all mails were handed out", func() bool { return pending(t, conns.Cloud) == 0 },
	)
	for range 2 { // the next mail may be the flood's
		release <- struct{}{}
	}
	streamstest.Eventually(
		t, "the other sender's mail is delivered", func() bool { return delivered("quiet") },
	)
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(strings.Join(order, " "), "flood"); n > 6 {
		t.Errorf("%d mails of the flood were tried first, want at most 6", n)
	}
}

// pending returns how many ordinary mails the broker has not handed out yet.
func pending(t *testing.T, nc *nats.Conn) uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	streamstest.Must(t, err)
	consumer, err := js.Consumer(t.Context(), outbox.Stream, "delivery")
	streamstest.Must(t, err)
	return consumer.CachedInfo().NumPending
}

// Mails about warnings that the mail server did not take filled an organization's part of the
// queue, and kept smoke out of it.
func TestAlarmsWaitForNoOrdinaryMail(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	cfg := quick()
	cfg.PerSender = 10
	o := open(t, conns, cfg)
	putAs := func(id string, alarm bool) error {
		m := mail(id, time.Hour, []byte(id))
		m.Sender, m.Alarm = "mill", alarm
		return o.Put(t.Context(), m)
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
		m := mail(fmt.Sprint(sender, i), time.Hour, nil)
		m.Sender, m.Alarm = sender, true
		return o.Put(t.Context(), m)
	}
	for i := range 3 {
		streamstest.Must(t, putAs("mill", i))
	}
	if err := putAs("mill", 3); !errors.Is(err, outbox.ErrSenderFull) {
		t.Errorf("the fourth alarm: got %v, want ErrSenderFull", err)
	}
	if err := putAs("quay", 0); err != nil {
		t.Errorf("an alarm of another sender: got %v", err)
	}
}
