package views

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

const (
	// maxRunMessages and maxRunBytes bound a run.
	maxRunMessages = 1000
	maxRunBytes    = 256 << 10
	// maxRuns and maxInFlightBytes bound the runs on their way in one shard.
	maxRuns          = 1024
	maxInFlightBytes = 4 << 20
	// answerTimeout is how long the broker may take to answer a run. Then the view is repaired,
	// which needs no memory.
	answerTimeout = 10 * time.Second
	// requestTimeout bounds a request for a stream's information or for a message, listTimeout one
	// for a page of a list, and createTimeout the creation or the update of a stream.
	requestTimeout = 3 * time.Second
	listTimeout    = 10 * time.Second
	createTimeout  = 10 * time.Second
)

// once is the policy for requests to streams. They are not repeated: in a cluster that lost a
// server, many views are without a leader for long, and the repairs of others must not wait for
// them. A repair that failed is repeated as a whole.
var once = jsapi.Retry{
	Total: requestTimeout, Try: requestTimeout, If: func(error) bool { return false },
}

// listOnce is once for lists. A list that lacks an answer for some stream takes a server 4 s.
var listOnce = jsapi.Retry{Total: listTimeout, Try: listTimeout, If: once.If}

var errNoAnswer = fmt.Errorf("no answer within %v", answerTimeout)

// shard has the views in one account of the broker. Its goroutine, in run, is the only one that
// sends to views that are current.
type shard struct {
	group  *group
	number int
	nc     *nats.Conn
	js     jetstream.JetStream
	api    jsapi.API
	lists  jsapi.API
	out    *jsapi.Appender
	// wake has a value when there are views to send to.
	wake chan struct{}

	mu   sync.Mutex
	hubs map[domain.HubID]*view
	// ready are current views with pending records and without a run.
	ready []*view
	// runs are on their way, by the tokens of their messages.
	runs          map[uint64]*run
	tokens        uint64
	inFlightBytes int
	// blocked reports that ready views wait for room among what is on its way.
	blocked bool
}

func newShard(g *group, number int) (*shard, error) {
	nc := g.cfg.Conns.Shards[number]
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	s := &shard{
		group: g, number: number, nc: nc, js: js, api: jsapi.New(nc).WithRetry(once),
		lists: jsapi.New(nc).WithRetry(listOnce),
		wake:  make(chan struct{}, 1), hubs: map[domain.HubID]*view{}, runs: map[uint64]*run{},
	}
	// Each run has two answers. Runs that were given up may still be answered.
	if s.out, err = jsapi.NewAppender(nc, 4*maxRuns); err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	return s, nil
}

// view returns the view of a hub. The caller must hold s.mu.
func (s *shard) view(hub domain.HubID) *view {
	v := s.hubs[hub]
	if v == nil {
		// The id may be a part of a whole commit in memory.
		v = &view{shard: s, hub: domain.HubID(strings.Clone(string(hub)))}
		s.hubs[v.hub] = v
	}
	return v
}

func (s *shard) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run sends records and receives the answers until ctx ends.
func (s *shard) run(ctx context.Context) error {
	msg := newMessage()
	linger := time.NewTimer(0)
	<-linger.C
	lingering, began, lingers := false, time.Time{}, time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			switch {
			case s.group.urgent():
				s.send(msg)
			case !lingering:
				lingering, began = true, time.Now()
				lingers = s.group.linger()
				linger.Reset(lingers)
			case lingers > s.group.linger(): // the feed has got a subscriber
				lingers = s.group.linger()
				linger.Reset(lingers - time.Since(began))
			}
		case <-linger.C:
			if s.collects(time.Since(began)) {
				s.group.step("collect")
				linger.Reset(s.group.linger())
				continue
			}
			lingering = false
			s.send(msg)
		case answer := <-s.out.Answers():
			if s.receive(s.out.ReadAnswer(answer)) {
				s.send(msg)
			}
		}
	}
}

// busyViews is the least number of views with records to send with which a shard is busy.
const busyViews = 16

// collects reports whether the shard collects records for longer, after that has lasted for some
// time. In a cluster the feed always counts as followed, so lingers are short. But a view costs a
// server much more than a record, so a shard with records for many views collects more of each, up
// to Config.Linger.
func (s *shard) collects(lasted time.Duration) bool {
	if s.group.cfg.HasSubscribers != nil || lasted >= s.group.cfg.Linger || s.group.urgent() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) >= busyViews
}

// send sends the pending records of all views that are ready, as long as the limits of what is on
// its way allow.
func (s *shard) send(msg *message) {
	for {
		r := s.nextRun()
		if r == nil {
			return
		}
		s.group.step("send")
		if err := s.sendRun(msg, r); err != nil {
			s.fail(r, err)
		}
	}
}

// nextRun takes a run from the first view that is ready. It returns nil if there is none, or if too
// much is on its way.
func (s *shard) nextRun() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) > 0 {
		s.blocked = len(s.runs) >= maxRuns || s.inFlightBytes >= maxInFlightBytes
		if s.blocked {
			return nil
		}
		v := s.ready[0]
		s.ready[0] = nil
		s.ready = s.ready[1:]
		v.queued = false
		if !v.current || v.run != nil || len(v.pending) == 0 {
			continue // it has fallen behind since
		}
		s.tokens++
		r := &run{view: v, token: s.tokens, sentAt: time.Now(), answers: 2}
		n := 0
		for n < len(v.pending) && n < maxRunMessages && r.bytes < maxRunBytes {
			r.bytes += v.pending[n].record.Size()
			n++
		}
		if n == 1 {
			r.answers = 1
		}
		r.entries, v.pending = v.pending[:n:n], v.pending[n:]
		if len(v.pending) == 0 {
			v.pending = nil
		}
		v.run = r
		s.runs[r.token] = r
		s.inFlightBytes += r.bytes
		return r
	}
	s.ready, s.blocked = nil, false
	return nil
}

func (s *shard) sendRun(msg *message, r *run) error {
	for i, e := range r.entries {
		token := r.token
		if i > 0 && i < len(r.entries)-1 {
			token = 0
		}
		msg.set(e.record)
		jsapi.ExpectEnd(&msg.Msg, e.record.Seq-1)
		if err := s.out.Send(&msg.Msg, token); err != nil {
			return err
		}
	}
	return nil
}

// receive handles an answer of the broker. It reports whether there may be room now for views that
// waited for it.
func (s *shard) receive(answer jsapi.Answer) (unblocked bool) {
	s.group.step("answer")
	r, err := s.match(answer)
	switch {
	case err != nil:
		s.fail(r, err)
	case r != nil:
		s.group.metrics.written.Add(float64(len(r.entries)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked
}

// match finds the run that an answer is for. It returns nil while the run waits for its other
// answer, or if the run was given up. After the last answer the view has the run's records.
func (s *shard) match(answer jsapi.Answer) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[answer.Token]
	if r == nil {
		return nil, nil
	}
	r.answers--
	want := r.first()
	if r.answers == 0 {
		want = r.last()
	}
	switch {
	case answer.Err != nil:
		return r, answer.Err
	case answer.Sequence != want:
		return r, fmt.Errorf("stored with the sequence %d instead of %d", answer.Sequence, want)
	case r.answers > 0:
		return nil, nil
	}
	s.forget(r)
	r.view.run = nil
	r.view.end, r.view.endSince = want, time.Now()
	s.queueForFeed(r.entries...)
	r.view.enqueue()
	return r, nil
}

// forget removes a run from those on their way, and wakes the shard if views wait for the room. The
// caller must hold s.mu.
func (s *shard) forget(r *run) {
	delete(s.runs, r.token)
	s.inFlightBytes -= r.bytes
	if s.blocked {
		s.signal()
	}
}

// fail leaves a run's view to a repair, unless that was done before.
func (s *shard) fail(r *run, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.view.run == r {
		s.group.logFailure(r.view, "hub log not written", cause)
		// Messages of the run may have been stored after one that was not.
		r.view.suspect = r.first()
		r.view.setBehind(true)
		r.view.fallBehind()
	}
}

// failOverdue leaves views to a repair that have waited too long for an answer.
func (s *shard) failOverdue(now time.Time) {
	s.mu.Lock()
	var overdue []*run
	for _, r := range s.runs {
		if now.Sub(r.sentAt) > answerTimeout {
			overdue = append(overdue, r)
		}
	}
	s.mu.Unlock()
	for _, r := range overdue {
		s.fail(r, errNoAnswer)
	}
}
