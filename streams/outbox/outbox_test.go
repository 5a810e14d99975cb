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
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

const patience = time.Minute

// postman delivers mails as a test wants it, and keeps book.
type postman struct {
	mu    sync.Mutex
	tries map[string]int
	got   map[string]int // deliveries
	// answer says how a try ends; nil: well.
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

// lines is a log that can be read.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// having gives the lines with all of these words.
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

// quick is a configuration whose pauses fit into a test.
func quick() outbox.Config {
	return outbox.Config{
		FirstPause:  20 * time.Millisecond,
		MaxPause:    100 * time.Millisecond,
		FirstClosed: 20 * time.Millisecond,
		MaxClosed:   50 * time.Millisecond,
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

// mail is one that is alone to its recipient and of its sender.
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

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// waiting is how many mails the broker holds.
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

func empty(t *testing.T, conns *streams.Conns) {
	t.Helper()
	eventually(t, "the queue is empty", func() bool { return waiting(t, conns) == 0 })
}

// TestEachMailIsDeliveredOnce, also one that was put twice, and with two replicas at work.
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
	empty(t, conns)
	if got := man.delivered(); !slices.Equal(got, want) {
		t.Errorf("delivered %v", got)
	}
}

// TestMailThatIsNotTakenYetIsTriedAgain, and holds up no other.
func TestMailThatIsNotTakenYetIsTriedAgain(t *testing.T) {
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
	eventually(t, "the other mail is delivered", func() bool { return man.tried("fast") == 1 })
	eventually(
		t, "the mail is tried again and again", func() bool { return man.tried("slow-1") >= 4 },
	)
	close(free)
	empty(t, conns)
	if got := man.delivered(); len(got) != 7 ||
		slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, "×1") }) {
		t.Errorf("delivered %v", got)
	}
}

// TestRefusedMailIsDroppedAndTold at once, and only that one.
func TestRefusedMailIsDroppedAndTold(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	o := open(t, conns, cfg)
	man := newPostman(func(mail string, _ int) error {
		if mail == "bad" {
			return fmt.Errorf("%w: no such user here", outbox.ErrRejected)
		}
		return nil
	})
	put(t, o, "bad", "good")
	run(t, o, man.deliver)
	empty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"good×1"}) || man.tried("bad") != 1 {
		t.Errorf("delivered %v, tried the refused one %d times", got, man.tried("bad"))
	}
	if told := log.having("level=ERROR", "mail_id=bad", "no such user here"); len(told) != 1 {
		t.Errorf("the log has %d lines about it: %s", len(told), log.text.String())
	}
}

// TestObsoleteMailIsDropped quietly.
func TestObsoleteMailIsDropped(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	o := open(t, conns, cfg)
	man := newPostman(
		func(string, int) error { return fmt.Errorf("%w: revoked", outbox.ErrObsolete) },
	)
	put(t, o, "one")
	run(t, o, man.deliver)
	empty(t, conns)
	if told := log.having("level=INFO", "mail_id=one", "revoked"); len(told) != 1 ||
		man.tried("one") != 1 ||
		len(log.having("level=ERROR")) != 0 {
		t.Errorf("tried %d times: %s", man.tried("one"), log.text.String())
	}
}

// TestWayThatIsClosedHoldsAllBack: while nothing can be delivered, few tries are made, however many
// mails wait, and none is lost.
func TestWayThatIsClosedHoldsAllBack(t *testing.T) {
	t.Parallel()
	conns, cfg := streamstest.Start(t), quick()
	cfg.FirstClosed, cfg.MaxClosed = 200*time.Millisecond, 200*time.Millisecond
	o := open(t, conns, cfg)
	var mu sync.Mutex
	tries, closed := 0, true
	man := newPostman(func(string, int) error {
		mu.Lock()
		defer mu.Unlock()
		tries++
		if closed {
			return fmt.Errorf("%w: connection refused", outbox.ErrUnreachable)
		}
		return nil
	})
	for i := range 50 {
		put(t, o, fmt.Sprint("mail-", i))
	}
	began := time.Now()
	run(t, o, man.deliver)
	eventually(
		t, "it was tried a few times",
		func() bool { mu.Lock(); defer mu.Unlock(); return tries >= 8 },
	)
	mu.Lock()
	// At least 100 ms between two openings, at each of which four may try, and four that are on
	// their way.
	if most := 4 * (int(time.Since(began)/(100*time.Millisecond)) + 2); tries > most {
		t.Errorf("%d tries in %s", tries, time.Since(began))
	}
	closed = false
	mu.Unlock()
	empty(t, conns)
	if got := man.delivered(); len(got) != 50 {
		t.Errorf("delivered %d mails: %v", len(got), got)
	}
}

// TestMailWhoseTimeIsOverIsDroppedAndTold soon after that time, even when the next try would have
// been much later.
func TestMailWhoseTimeIsOverIsDroppedAndTold(t *testing.T) {
	t.Parallel()
	conns, log := streamstest.Start(t), &lines{}
	o := open(
		t,
		conns,
		outbox.Config{
			FirstPause: time.Hour,
			MaxPause:   time.Hour,
			Log:        slog.New(slog.NewTextHandler(log, nil)),
		},
	)
	if err := o.Put(t.Context(), mail("late", 500*time.Millisecond, []byte("late"))); err != nil {
		t.Fatal(err)
	}
	man := newPostman(func(string, int) error { return errors.New("not now") })
	run(t, o, man.deliver)
	empty(t, conns)
	if man.tried("late") != 1 {
		t.Errorf("tried %d times", man.tried("late"))
	}
	if told := log.having("level=ERROR", "mail_id=late", "in time"); len(told) != 1 {
		t.Errorf("the log has %d lines about it: %s", len(told), log.text.String())
	}
}

// TestMailsOutliveTheBroker: what was put before it ended is delivered after its return, also by a
// Run that waited all the time, and what was done stays done.
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
	eventually(
		t, "the first mail is gone",
		func() bool { return waiting(t, conns) == 1 && man.tried("held") > 0 },
	)
	broker.Stop()
	close(held)
	broker.Start(t)
	put(t, o, "later")
	empty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"first×1", "held×1", "later×1"}) {
		t.Errorf("delivered %v", got)
	}
}

// TestStopLetsDeliveriesEnd: an orderly stop repeats none.
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

// TestStopCutsOffWhatHangs after Grace, and the next Run has the mail at once.
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
	empty(t, conns)
	if took := time.Since(began); took > 30*time.Second || len(man.delivered()) != 1 {
		t.Errorf("delivered %v after %s", man.delivered(), took)
	}
}

// inFiles says whether a file of a folder holds a text.
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

// TestMailsThatAreDoneAreErased: no file of the broker holds what they said.
func TestMailsThatAreDoneAreErased(t *testing.T) {
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
		t.Fatal("a mail that waits is in no file")
	}
	run(t, o, man.deliver)
	empty(t, conns)
	eventually(t, "it is in no file", func() bool { return !inFiles(t, broker.Dir(), secret) })
	if len(man.delivered()) != 3 {
		t.Errorf("delivered %v", man.delivered())
	}
}

// TestFullQueueRefusesNewMails and keeps the old.
func TestFullQueueRefusesNewMails(t *testing.T) {
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
				if _, err := streams.Store(t.Context(), conns.Cloud, stored); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	puts.Wait()
	if err := o.Put(t.Context(), mail("one more", time.Hour, nil)); err == nil {
		t.Error("an id with a space is taken")
	}
	if err := o.Put(t.Context(), mail("one-more", time.Hour, nil)); !errors.Is(
		err, outbox.ErrFull,
	) {
		t.Errorf("a full queue answers %v", err)
	}
	if err := o.Put(t.Context(), mail("big", time.Hour, make([]byte, outbox.MaxContent+1))); err == nil {
		t.Error("a mail that is too big is taken")
	}
	// Who wants to sign in waits for nobody's invitations.
	urgent := mail("urgent", time.Hour, nil)
	urgent.Urgent = true
	if err := o.Put(t.Context(), urgent); err != nil {
		t.Errorf("an urgent mail finds the queue full: %v", err)
	}
	if n := waiting(t, conns); n != outbox.Capacity+1 {
		t.Errorf("%d mails wait", n)
	}
}

// TestMailThatCannotBeReadIsDropped: what somebody else put into the stream stops nothing.
func TestMailThatCannotBeReadIsDropped(t *testing.T) {
	t.Parallel()
	conns, log, cfg := streamstest.Start(t), &lines{}, quick()
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	o, man := open(t, conns, cfg), newPostman(nil)
	if err := conns.Cloud.Publish("mail.waiting", []byte("?")); err != nil {
		t.Fatal(err)
	}
	put(t, o, "one")
	run(t, o, man.deliver)
	empty(t, conns)
	if got := man.delivered(); !slices.Equal(got, []string{"one×1"}) ||
		len(log.having("level=ERROR", "cannot be read")) != 1 {
		t.Errorf("delivered %v; log: %s", got, log.text.String())
	}
}
