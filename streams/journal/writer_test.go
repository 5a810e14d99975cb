package journal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// A writer that was replaced must store nothing any more, whatever it knows of its successor.
func TestNewWriterFencesTheFormer(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	x := NewIndex(0)
	former := begin(t, j, x)
	former.store(hubA)
	next := begin(t, j, x)

	if _, err := former.Commit(t.Context(), former.records(hubA), x.Tip); !errors.Is(err, ErrFenced) {
		t.Fatalf("Commit of the former writer: %v, want ErrFenced", err)
	}
	if _, err := former.Commit(t.Context(), former.records(hubA), x.Tip); !errors.Is(err, ErrFenced) {
		t.Errorf("its next Commit: %v, want ErrFenced", err)
	}
	records := next.records(hubA)
	last := begin(t, j, x)
	last.store(hubA)
	if tip, _ := x.Tip(hubA); tip.Seq != 2 {
		t.Errorf("the tip has sequence %d, want 2", tip.Seq)
	}
	// It plans with the end that it knows, and the index has its successor's commit meanwhile.
	if _, err := next.Commit(t.Context(), records, x.Tip); !errors.Is(err, ErrFenced) {
		t.Errorf("Commit after its successor's: %v, want ErrFenced", err)
	}
}

// A writer that opens while the former one still stores must get its turn.
func TestOpenWriterAgainstABusyWriter(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	former := begin(t, j, NewIndex(0))
	fenced := make(chan error, 1)
	go func() {
		for {
			c, err := former.Commit(context.Background(), former.records(hubA), former.Tip)
			if err == nil {
				err = former.Apply(c)
			}
			if err != nil {
				fenced <- err
				return
			}
		}
	}()
	next, err := j.OpenWriter(t.Context(), 0, always)
	if err != nil {
		t.Fatalf("OpenWriter: %v", err)
	}
	if err := <-fenced; !errors.Is(err, ErrFenced) {
		t.Fatalf("the former writer ended with %v, want ErrFenced", err)
	}
	if former.End()+1 != next.End() {
		t.Errorf("the former writer ends with %d, the next one with %d", former.End(), next.End())
	}
}

// lossy is a journal whose broker's acknowledgements can be lost on the way. lost has something
// once one was.
func lossy(t *testing.T) (j *Journal, lose func(bool), lost <-chan struct{}) {
	t.Helper()
	b := streamstest.New(t)
	losses := make(chan struct{}, 1)
	proxy := streamstest.NewRewriter(b)
	j = open(t, b.Connect(t, nats.InProcessServer(proxy)), Config{})
	return j, func(on bool) {
		if !on {
			proxy.Change(nil)
			return
		}
		proxy.Change(func(payload []byte) []byte {
			if strings.Contains(string(payload), `{"stream":"`+streams.JournalStream(0)) {
				select {
				case losses <- struct{}{}:
				default:
				}
				return nil
			}
			return payload
		})
	}, losses
}

// The answer to a commit can be lost although the commit is stored: it must be found again, and
// must not be stored twice.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	j, lose, _ := lossy(t)
	s := begin(t, j, NewIndex(0))
	lose(true)
	s.store(hubA)
	lose(false)
	if n := testutil.ToFloat64(j.metrics.retries); n == 0 {
		t.Error("no answer was lost")
	}
	s.store(hubA)
	f, _ := follow(t, j, 1)
	if got := f.sync(t); len(got) != 3 || len(got[2].Records) != 1 || got[2].Records[0].Seq != 2 {
		t.Errorf("stored are %+v, want three commits", got)
	}
}

// A process that ends between a commit and its answer leaves the commit to its successor, which
// must find it.
func TestNoAnswerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	j, lose, lost := lossy(t)
	x := NewIndex(0)
	former := begin(t, j, x)
	lose(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-lost
		cancel()
	}()
	if _, err := former.Commit(ctx, former.records(hubA), x.Tip); !errors.Is(
		err, ErrOutcomeUnknown,
	) {
		t.Fatalf("Commit without an answer: %v, want ErrOutcomeUnknown", err)
	}
	lose(false)
	_, err := former.Commit(t.Context(), former.records(hubA), x.Tip)
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the next Commit: %v, want ErrOutcomeUnknown", err)
	}
	next, err := j.OpenWriter(t.Context(), 0, always)
	streamstest.Must(t, err)
	f, _ := follow(t, j, x.Position()+1)
	streamstest.Must(t, x.Apply(f.sync(t)...))
	if tip, _ := x.Tip(hubA); tip.Seq != 1 || tip.Commit != 2 || next.End() != 3 {
		t.Errorf("the tip is %+v, and the next writer at %d; want record 1 in commit 2, and 3",
			tip, next.End())
	}
}

// A journal that rejects a commit must leave the writer usable.
func TestNotStored(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	j := open(t, conns, Config{})
	s := begin(t, j, NewIndex(0))
	limit(t, conns.Cloud, 1)
	_, err := s.Commit(t.Context(), s.records(hubA), s.Tip)
	if !errors.Is(err, ErrNotStored) || !jsapi.IsStreamFull(err) {
		t.Fatalf("Commit to a full journal: %v, want ErrNotStored", err)
	}
	limit(t, conns.Cloud, -1)
	if c := s.store(hubA); c.Seq != 2 {
		t.Errorf("the next commit is %d, want 2", c.Seq)
	}
}
