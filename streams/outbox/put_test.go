package outbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// inFiles reports whether a file of a folder contains a text.
func inFiles(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			content, readErr := os.ReadFile(path)
			found = found || readErr == nil && bytes.Contains(content, []byte(text))
		}
		return nil // files come and go under a running broker
	})
	streamstest.Must(t, err)
	return found
}

// TestDoneMailsAreErased checks that no file of the broker contains a delivered mail.
func TestDoneMailsAreErased(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	o, man := open(t, conns, quick()), newPostman(nil)
	put(t, o, "one")
	const secret = "a-secret-that-only-a-mail-may-contain"
	streamstest.Must(t, o.Put(t.Context(), mail("two", time.Hour, []byte(secret))))
	put(t, o, "three")
	if !inFiles(t, broker.Dir(), secret) {
		t.Fatal("no file contains a waiting mail: the test looks in the wrong place")
	}
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	streamstest.Eventually(
		t, "no file contains the secret", func() bool { return !inFiles(t, broker.Dir(), secret) },
	)
	if len(man.delivered()) != 3 {
		t.Errorf("delivered %v, want three mails", man.delivered())
	}
}

// TestFullQueueRejectsNewMails checks that the queue keeps the old mails, and accepts urgent ones
// and alarms.
func TestFullQueueRejectsNewMails(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	o := open(t, conns, quick())
	var puts sync.WaitGroup
	for worker := range 20 {
		puts.Go(func() {
			for i := range outbox.Capacity / 20 {
				id := fmt.Sprint(worker, "-", i)
				stored := &nats.Msg{
					Subject: "mail.ordinary.x." + id,
					Header:  nats.Header{"Nats-Msg-Id": {id}},
				}
				if _, err := jsapi.Append(t.Context(), conns.Cloud, stored); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	puts.Wait()
	if err := o.Put(t.Context(), mail("one more", time.Hour, nil)); err == nil {
		t.Error("put an id with a space: got no error")
	}
	if err := o.Put(t.Context(), mail("one-more", time.Hour, nil)); !errors.Is(
		err, outbox.ErrFull,
	) {
		t.Errorf("put into a full queue: got %v, want ErrFull", err)
	}
	tooBig := make([]byte, outbox.MaxContent+1)
	if err := o.Put(t.Context(), mail("big", time.Hour, tooBig)); err == nil {
		t.Error("put a mail over MaxContent: got no error")
	}
	// Sign-in mails and alarms do not wait for invitations.
	urgent, alarm := mail("urgent", time.Hour, nil), mail("alarm", time.Hour, nil)
	urgent.Urgent, alarm.Alarm = true, true
	for _, m := range []outbox.Mail{urgent, alarm} {
		if err := o.Put(t.Context(), m); err != nil {
			t.Errorf("put mail %s: got %v", m.ID, err)
		}
	}
	if n := waiting(t, conns); n != outbox.Capacity+2 {
		t.Errorf("waiting mails: got %d, want %d", n, outbox.Capacity+2)
	}
}
