package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	streamstest.Must(t, err)
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
		streamstest.Must(t, o.Put(t.Context(), mail(id, time.Hour, []byte(id))))
	}
}

// run runs the queue until stop is called, or the test ends.
func run(
	t *testing.T, o *outbox.Outbox, deliver func(context.Context, []byte) error,
) (stop func()) {
	t.Helper()
	return streamstest.Run(
		t, "outbox", func(ctx context.Context) error { return o.Run(ctx, deliver) },
	)
}

// waiting returns how many mails the broker has.
func waiting(t *testing.T, conns *streams.Conns) uint64 {
	t.Helper()
	info, err := jsapi.New(conns.Cloud).Info(t.Context(), outbox.Stream)
	streamstest.Must(t, err)
	return info.State.Msgs
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
		t.Errorf("delivered %v, want each of 100 mails once", got)
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
		t.Errorf("delivered %v, want each of 7 mails once", got)
	}
}

// TestUnreachableServerDelaysAllMails checks that there are few tries while the server is
// unreachable, however many mails wait, and that no mail is lost.
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
		t, "eight deliveries have failed",
		func() bool { mu.Lock(); defer mu.Unlock(); return tries >= 8 },
	)
	mu.Lock()
	// A pause is at least 100 ms. After it four deliverers of each class may try.
	if most := 4 * (int(time.Since(began)/(100*time.Millisecond)) + 2); tries > most {
		t.Errorf("%d tries in %s, want at most %d", tries, time.Since(began), most)
	}
	unreachable = false
	mu.Unlock()
	awaitEmpty(t, conns)
	if got := man.delivered(); len(got) != 50 {
		t.Errorf("delivered %d mails, want 50: %v", len(got), got)
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
