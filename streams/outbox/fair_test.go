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

// 353 invitations to one address were 353 mails. Now only the newest mail to a recipient is
// delivered, and no file contains a replaced one.
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
		{ID: "5", Recipient: "ann", Urgent: true, Content: []byte(former + "-to-sign-in")},
		{ID: "6", Recipient: "ann", Urgent: true, Content: []byte("newest link")},
		// Put again, as after a lost answer.
		{ID: "2", Sender: "mill", Recipient: "ann", Content: []byte("second")},
	} {
		m.Expires = time.Now().Add(time.Hour)
		if err := o.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	// Of several mails that are put at once, one waits.
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			m := outbox.Mail{
				ID:        fmt.Sprint("race", n),
				Sender:    "mill",
				Recipient: "cid",
				Expires:   time.Now().Add(time.Hour),
				Content:   []byte("race"),
			}
			if err := o.Put(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := waiting(t, conns); n != 5 {
		t.Errorf("waiting mails: got %d, want 5", n)
	}
	streamstest.Eventually(
		t, "no file contains a replaced mail",
		func() bool { return !inFiles(t, broker.Dir(), former) },
	)
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got, want := man.delivered(), []string{
		"bob's×1", "newest link×1", "quay's×1", "race×1", "second×1",
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
		return o.Put(t.Context(), outbox.Mail{
			ID: sender + "-" + recipient, Sender: sender, Recipient: recipient, Urgent: urgent,
			Expires: time.Now().Add(time.Hour), Content: []byte(sender),
		})
	}
	for n := range cfg.PerSender {
		if err := putAs("flood", fmt.Sprint("victim", n), false); err != nil {
			t.Fatal(err)
		}
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
	if err := putAs("quiet", "ann", false); err != nil {
		t.Fatal(err)
	}
	if err := putAs("sign-in", "ann", true); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := js.Consumer(t.Context(), outbox.Stream, "delivery")
	if err != nil {
		t.Fatal(err)
	}
	return consumer.CachedInfo().NumPending
}
