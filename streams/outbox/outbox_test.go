package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

// postman records deliveries.
type postman struct {
	mu    sync.Mutex
	tries map[string]int
	got   map[string]int // successful tries
	// answer returns the result of a try; nil stands for success.
	answer func(content string, try int) error
}

func (p *postman) deliver(_ context.Context, content []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	mail := string(content)
	p.tries[mail]++
	if p.answer != nil {
		if err := p.answer(mail, p.tries[mail]); err != nil {
			return err
		}
	}
	p.got[mail]++
	return nil
}

func newPostman(answer func(mail string, try int) error) *postman {
	return &postman{tries: map[string]int{}, got: map[string]int{}, answer: answer}
}

func (p *postman) delivered() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for mail, times := range p.got {
		all = append(all, fmt.Sprintf("%s×%d", mail, times))
	}
	slices.Sort(all)
	return all
}

func (p *postman) tried(mail string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries[mail]
}

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// having returns the lines that contain all of the texts.
func (l *lines) having(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(
			words, func(word string) bool { return !strings.Contains(line, word) },
		) {
			found = append(found, line)
		}
	}
	return found
}

// quick returns a configuration with short pauses.
func quick() outbox.Config {
	return outbox.Config{
		FirstPause:       20 * time.Millisecond,
		MaxPause:         100 * time.Millisecond,
		FirstServerPause: 20 * time.Millisecond,
		MaxServerPause:   50 * time.Millisecond,
		Logger:           slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, conns *streams.Conns, cfg outbox.Config) *outbox.Outbox {
	t.Helper()
	o, err := outbox.Open(t.Context(), conns, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// mail returns a mail with a sender and a recipient of its own.
func mail(id string, life time.Duration, content []byte) outbox.Mail {
	return outbox.Mail{
		ID:        id,
		Sender:    "sender of " + id,
		Recipient: "recipient of " + id,
		Expires:   time.Now().Add(life),
		Content:   content,
	}
}

func put(t *testing.T, o *outbox.Outbox, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := o.Put(t.Context(), mail(id, time.Hour, []byte(id))); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs the queue until stop is called, or the test ends.
func run(
	t *testing.T, o *outbox.Outbox, deliver func(context.Context, []byte) error,
) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx, deliver) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// waiting returns how many mails the broker has.
func waiting(t *testing.T, conns *streams.Conns) uint64 {
	t.Helper()
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "MAIL")
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

func awaitEmpty(t *testing.T, conns *streams.Conns) {
	t.Helper()
	streamstest.Eventually(t, "the queue is empty", func() bool { return waiting(t, conns) == 0 })
}

// TestEachMailIsDeliveredOnce puts each mail twice and runs two replicas.
func TestEachMailIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	man := newPostman(nil)
	o := open(t, conns, quick())
	var want []string
	for i := range 100 {
		id := fmt.Sprintf("mail-%02d", i)
		put(t, o, id, id)
		want = append(want, id+"×1")
	}
	run(t, o, man.deliver)
	run(t, open(t, broker.Connect(t), quick()), man.deliver)
	awaitEmpty(t, conns)
	if got := man.delivered(); !slices.Equal(got, want) {
		t.Errorf("delivered %v", got)
	}
}

// TestFailedMailIsTriedAgain checks that a failed mail is tried again and delays no other mail.
func TestFailedMailIsTriedAgain(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	o, free := open(t, conns, quick()), make(chan struct{})
	man := newPostman(func(mail string, try int) error {
		select {
		case <-free:
			return nil
		default:
		}
		if strings.HasPrefix(mail, "slow") {
			return errors.New("mailbox is busy")
		}
		return nil
	})
	put(t, o, "slow-1", "slow-2", "slow-3", "slow-4", "slow-5", "slow-6", "fast")
	run(t, o, man.deliver)
	streamstest.Eventually(
		t, "the other mail is delivered", func() bool { return man.tried("fast") == 1 },
	)
	streamstest.Eventually(
		t, "the mail is tried again and again", func() bool { return man.tried("slow-1") >= 4 },
	)
	close(free)
	awaitEmpty(t, conns)
	if got := man.delivered(); len(got) != 7 ||
		slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, "×1") }) {
		t.Errorf("delivered %v", got)
	}
}

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
		t.Errorf("tried %d times: %s", man.tried("one"), log.text.String())
	}
}

// TestUnreachableServerDelaysAllMails: while the server is unreachable there are few tries, however
// many mails wait, and no mail is lost.
func TestUnreachableServerDelaysAllMails(t *testing.T) {
	t.Parallel()
	conns, cfg := streamstest.Start(t), quick()
	cfg.FirstServerPause, cfg.MaxServerPause = 200*time.Millisecond, 200*time.Millisecond
	o := open(t, conns, cfg)
	var mu sync.Mutex
	tries, unreachable := 0, true
	man := newPostman(func(string, int) error {
		mu.Lock()
		defer mu.Unlock()
		tries++
		if unreachable {
			return fmt.Errorf("%w: connection refused", outbox.ErrUnreachable)
		}
		return nil
	})
	for i := range 50 {
		put(t, o, fmt.Sprint("mail-", i))
	}
	began := time.Now()
	run(t, o, man.deliver)
	streamstest.Eventually(
		t, "it was tried a few times",
		func() bool { mu.Lock(); defer mu.Unlock(); return tries >= 8 },
	)
	mu.Lock()
	// There are at least 100 ms between two pauses, and after each four deliverers of each class
	// may try.
	if most := 4 * (int(time.Since(began)/(100*time.Millisecond)) + 2); tries > most {
		t.Errorf("%d tries in %s, want at most %d", tries, time.Since(began), most)
	}
	unreachable = false
	mu.Unlock()
	awaitEmpty(t, conns)
	if got := man.delivered(); len(got) != 50 {
		t.Errorf("delivered %d mails: %v", len(got), got)
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
		t.Errorf("delivered %v", got)
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
		t.Errorf("%d mails wait, delivered %v", n, man.delivered())
	}
}

// TestStopCutsOffWhatHangs checks that a stop takes Grace, and that the next Run gets the mail at
// once.
func TestStopCutsOffWhatHangs(t *testing.T) {
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
		t.Errorf("the stop took %s", took)
	}
	man := newPostman(nil)
	run(t, o, man.deliver)
	began = time.Now()
	awaitEmpty(t, conns)
	if took := time.Since(began); took > 30*time.Second || len(man.delivered()) != 1 {
		t.Errorf("delivered %v after %s", man.delivered(), took)
	}
}

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
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDoneMailsAreErased checks that no file of the broker contains a delivered mail.
func TestDoneMailsAreErased(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	o, man := open(t, conns, quick()), newPostman(nil)
	put(t, o, "one")
	const secret = "a-secret-that-only-a-mail-may-tell"
	if err := o.Put(t.Context(), mail("two", time.Hour, []byte(secret))); err != nil {
		t.Fatal(err)
	}
	put(t, o, "three")
	if !inFiles(t, broker.Dir(), secret) {
		t.Fatal("no file contains a waiting mail: the test looks in the wrong place")
	}
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	streamstest.Eventually(
		t, "it is in no file", func() bool { return !inFiles(t, broker.Dir(), secret) },
	)
	if len(man.delivered()) != 3 {
		t.Errorf("delivered %v", man.delivered())
	}
}

// TestFullQueueRejectsNewMails checks that the queue keeps the old mails, and accepts urgent ones.
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
	if err := o.Put(t.Context(), mail("big", time.Hour, make([]byte, outbox.MaxContent+1))); err == nil {
		t.Error("put a mail over MaxContent: got no error")
	}
	// Sign-in mails do not wait for invitations.
	urgent := mail("urgent", time.Hour, nil)
	urgent.Urgent = true
	if err := o.Put(t.Context(), urgent); err != nil {
		t.Errorf("put an urgent mail: got %v", err)
	}
	if n := waiting(t, conns); n != outbox.Capacity+1 {
		t.Errorf("%d mails wait", n)
	}
}

// TestUnreadableMailIsDropped checks that a foreign message in the stream stops no mail.
func TestUnreadableMailIsDropped(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	o, man := open(t, conns, cfg), newPostman(nil)
	if err := conns.Cloud.Publish("mail.waiting", []byte("?")); err != nil {
		t.Fatal(err)
	}
	put(t, o, "one")
	run(t, o, man.deliver)
	awaitEmpty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"one×1"}) ||
		len(log.having("level=ERROR", "unreadable")) != 1 {
		t.Errorf("delivered %v; log: %s", got, log.text.String())
	}
}
