package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/jsapi"
)

const (
	// callTimeout bounds a call of a client.
	callTimeout = 10 * time.Second
	// commandValues is how many values a hub's setting has: each is set by one command at most.
	commandValues = 100
	// pageSize is the most events that a client reads at once.
	pageSize = 500
	// viewLimit is how long it may take until a hub's stream has what the journal has.
	viewLimit = 3 * time.Minute
	// sample is how often the simulator looks at what changes without a word.
	sample = 100 * time.Millisecond
	// One of slowEvery reads of a tail is followed by a pause of slowReader, and one by a hop.
	slowEvery, slowReader = 20, 8 * time.Second
)

// event is an event as a reader saw it.
type event struct {
	kind     string
	hub      domain.HubID
	value    int // of the counter; 0 for any other event
	envelope string
}

func parseEvent(e domain.EncodedEvent) event {
	var decoded struct {
		Type  string
		HubID domain.HubID `json:"hub_id"`
		Data  struct {
			Key   string
			Value int
		}
	}
	seen := event{envelope: string(e.Envelope)}
	if json.Unmarshal(e.Envelope, &decoded) == nil {
		seen.kind, seen.hub = decoded.Type, decoded.HubID
		if decoded.Data.Key == counter && decoded.Type == "channel.observed" {
			seen.value = decoded.Data.Value
		}
	}
	return seen
}

// Load is what hubs and clients do, until it ends.
type Load struct {
	world   *World
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	seen    map[domain.HubID][]event // by tails, in the order of each
	history map[domain.HubID][]operation
	answers map[string]string // to commands that succeeded, by their keys
	// progress is the last value of each hub that each client has read.
	progress map[string]map[domain.HubID]int
}

// StartLoad starts the load: each hub emits, has as many readers that poll and that follow as there
// are replicas, and gets commands. The organization has readers of all hubs, and keys and sites come
// and go.
func StartLoad(w *World) *Load {
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{
		world: w, stop: stop, seen: map[domain.HubID][]event{},
		history: map[domain.HubID][]operation{}, answers: map[string]string{},
		progress: map[string]map[domain.HubID]int{},
	}
	w.load = l
	for i := range w.Replicas {
		name := fmt.Sprint("client ", i+1, " of the organization")
		l.progress[name] = map[domain.HubID]int{}
		l.run(ctx, 500*time.Millisecond, 2*time.Second, l.orgReader(ctx, name))
	}
	l.run(ctx, sample, 2*sample, func(*rand.Rand) { w.checkHolders() })
	l.run(ctx, time.Second, 6*time.Second, l.keyHolder(ctx))
	l.run(ctx, time.Second, 6*time.Second, l.siteMaker(ctx))
	for _, h := range w.Hubs {
		l.run(ctx, 200*time.Millisecond, 2*time.Second, func(*rand.Rand) { h.Emit() })
		l.run(ctx, 5*time.Second, 10*time.Second, l.commander(ctx, h))
		for first := range w.Replicas {
			l.run(ctx, 500*time.Millisecond, 3*time.Second, l.poller(ctx, h, first))
			l.run(ctx, 100*time.Millisecond, time.Second, l.follower(ctx, h, first))
		}
	}
	return l
}

// run repeats f with pauses between least and most.
func (l *Load) run(ctx context.Context, least, most time.Duration, f func(*rand.Rand)) {
	random := l.world.Random()
	l.running.Go(func() {
		for sleep(ctx, least+time.Duration(random.Int63n(int64(most-least)))) == nil {
			f(random)
		}
	})
}

// Stop ends the load.
func (l *Load) Stop() {
	l.stop()
	l.running.Wait()
}

// poller returns a client that reads page after page at a replica, each time at any that is ready. It
// records how far the log was.
func (l *Load) poller(ctx context.Context, h *Hub, client int) func(*rand.Rand) {
	after, last := "", 0
	return func(random *rand.Rand) {
		p := l.world.ready(random.Intn(len(l.world.Replicas)))
		if p == nil {
			return
		}
		call := l.begin(ctx)
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		begun := time.Now()
		for more := true; more; {
			var page domain.EventPage
			err := p.call(ctx, func(ctx context.Context) (err error) {
				page, err = p.logs.Page(ctx, h.ID, after, pageSize)
				return err
			})
			if err != nil {
				call.failed(string(h.ID)+": page", err)
				return
			}
			for _, e := range page.Events {
				if v := parseEvent(e).value; v != 0 {
					if v != last+1 {
						l.world.Failf("%s: a page has %d after %d", h.ID, v, last)
					}
					last = v
				}
			}
			after, more = page.Next, page.HasMore
		}
		l.record(h, operation{kind: read, value: last, begun: begun, ended: time.Now(), client: client})
		l.reached(fmt.Sprint("poller ", client+1), h.ID, last)
	}
}

// follower returns a client that follows the log at a replica until that fails, and then goes on at
// another one from its last event; sometimes at once, without a failure, when the other one may not
// have that event yet.
func (l *Load) follower(ctx context.Context, h *Hub, at int) func(*rand.Rand) {
	after, last := "", 0
	client := len(l.world.Replicas) + at
	follow := func(random *rand.Rand) (hop bool) {
		at++
		p := l.world.ready(at % len(l.world.Replicas))
		if p == nil {
			return false
		}
		call := l.begin(ctx)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		var reader *feed.Reader
		err := p.call(ctx, func(ctx context.Context) (err error) {
			reader, err = p.logs.Follow(ctx, h.ID, after)
			return err
		})
		if err != nil {
			call.failed(string(h.ID)+": follow", err)
			return false
		}
		defer reader.Close()
		for {
			select {
			case <-reader.Ready():
			case <-ctx.Done():
				return false
			}
			begun := time.Now()
			events, err := reader.Next(ctx, pageSize)
			if err != nil {
				l.checkError(string(h.ID)+": next", err)
				return false
			}
			if p.ctx.Err() != nil {
				return false
			}
			for _, e := range events {
				seen := parseEvent(e)
				if v := seen.value; v != 0 {
					if last != 0 && v != last+1 {
						l.world.Failf("%s: a tail has %d after %d", h.ID, v, last)
					}
					last = v
				}
				after = e.Cursor
				l.mu.Lock()
				l.seen[h.ID] = append(l.seen[h.ID], seen)
				l.mu.Unlock()
			}
			if last != 0 {
				l.record(h, operation{
					kind: seenBy, value: last, begun: begun, ended: time.Now(), client: client,
				})
				l.reached(fmt.Sprint("tail ", client+1), h.ID, last)
			}
			switch random.Intn(slowEvery) {
			case 0:
				_ = sleep(ctx, slowReader) // and falls behind what the replica has in memory
			case 1:
				return true
			}
		}
	}
	return func(random *rand.Rand) {
		for follow(random) {
		}
	}
}

// commander returns a client that sends a command until it has an answer, and then again: the answer
// must be the same.
func (l *Load) commander(ctx context.Context, h *Hub) func(*rand.Rand) {
	next := 0
	return func(random *rand.Rand) {
		if next == commandValues {
			return
		}
		value := fmt.Sprint(next)
		next++
		key := string(h.ID) + "-" + value
		for range 3 + random.Intn(3) {
			p := l.world.ready(random.Intn(len(l.world.Replicas)))
			if p == nil {
				return
			}
			l.command(ctx, p, h, key, value)
			if sleep(ctx, time.Duration(random.Int63n(int64(3*time.Second)))) != nil {
				return
			}
		}
	}
}

func (l *Load) command(ctx context.Context, p *parts, h *Hub, key, value string) {
	call := l.begin(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var sent domain.SentCommand
	err := p.call(ctx, func(ctx context.Context) (err error) {
		sent, err = p.commands.Send(ctx, operator, domain.Command{
			OrgID: l.world.OrgID, HubID: h.ID, DeviceID: 1, Key: setting,
			Value: json.RawMessage(value), IdempotencyKey: key,
		})
		return err
	})
	if err != nil {
		if domain.CodeOf(err) == domain.CodeInternal && ctx.Err() == nil &&
			!errors.Is(err, commands.ErrClosed) && p.ctx.Err() == nil {
			l.world.Failf("%s: command %s: internal error: %v", h.ID, key, err)
		}
		call.failed("command "+key, err)
		return
	}
	sent.Replayed = false // the one difference that is allowed
	text, err := json.Marshal(sent)
	if err != nil {
		l.world.Failf("%s: command %s: %v", h.ID, key, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if former, ok := l.answers[key]; ok && former != string(text) {
		l.world.Failf("%s: command %s is answered %s, and before %s", h.ID, key, text, former)
	}
	l.answers[key] = string(text)
}

// checkError fails the run for an error that no client should get, whatever the network does.
func (l *Load) checkError(what string, err error) {
	if domain.CodeOf(err) == domain.CodeCursorExpired || domain.CodeOf(err) == domain.CodeNotFound {
		l.world.Failf("%s: %v", what, err)
	}
}

// call is a call of a client that has begun.
type call struct {
	load *Load
	ctx  context.Context // ends with the load
	calm int64           // World.calm at the begin
}

func (l *Load) begin(ctx context.Context) call { return call{l, ctx, l.world.calm.Load()} }

// failed checks the error of a call: nothing may fail while nothing is wrong.
func (c call) failed(what string, err error) {
	w := c.load.world
	if c.calm != 0 && c.calm == w.calm.Load() && c.ctx.Err() == nil &&
		domain.CodeOf(err) != domain.CodeRateLimited {
		w.Failf("%s: fails although the cluster has healed: %v", what, err)
	}
	c.load.checkError(what, err)
}

// reached notes that a client has read a hub's values up to one.
func (l *Load) reached(client string, hub domain.HubID, value int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.progress[client] == nil {
		l.progress[client] = map[domain.HubID]int{}
	}
	l.progress[client][hub] = value
}

// checkReached checks that all clients have read what the hubs had emitted before a time.
func (l *Load) checkReached(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.world.Hubs {
		want := 0
		for _, v := range h.Values() {
			if v.emitted.Before(before) {
				want++
			}
		}
		for client, hubs := range l.progress {
			if hubs[h.ID] < want {
				l.world.Failf("%s has read %d of %s, which had emitted %d before the heal", client,
					hubs[h.ID], h.ID, want)
			}
		}
	}
}

func (l *Load) record(h *Hub, op operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history[h.ID] = append(l.history[h.ID], op)
}

// Check compares what hubs and clients have seen with what is stored in the end.
func (l *Load) Check(ctx context.Context) {
	for _, h := range l.world.Hubs {
		for i, r := range l.world.Replicas {
			stored, err := l.readAll(ctx, r, h)
			if err != nil {
				l.world.Failf("%s: read at %s: %v", h.ID, r.host, err)
				continue
			}
			l.checkStored(h, r, stored)
			if i == 0 {
				l.checkSeen(h, stored)
			}
		}
		l.checkCommands(h)
		l.checkView(ctx, h)
		l.mu.Lock()
		checkLinearizable(l.world, h, l.history[h.ID])
		l.mu.Unlock()
	}
}

// readAll returns the log of a hub.
func (l *Load) readAll(ctx context.Context, r *Replica, h *Hub) (stored []event, err error) {
	p := r.parts.Load()
	if p == nil {
		return nil, errors.New("the replica is not ready")
	}
	for after := ""; ; {
		var page domain.EventPage
		err := p.call(ctx, func(ctx context.Context) (err error) {
			page, err = p.logs.Page(ctx, h.ID, after, pageSize)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			stored = append(stored, parseEvent(e))
		}
		if after = page.Next; !page.HasMore {
			return stored, nil
		}
	}
}

// checkStored checks that a log has each value once and in order, and no gap.
func (l *Load) checkStored(h *Hub, r *Replica, stored []event) {
	last := 0
	for _, e := range stored {
		switch {
		case e.value != 0 && e.value != last+1:
			l.world.Failf("%s at %s: the log has %d after %d", h.ID, r.host, e.value, last)
			return
		case e.value != 0:
			last = e.value
		case e.kind == domain.EventHubEventsSkipped, e.kind == domain.EventHubLogReset:
			l.world.Failf("%s at %s: the log has %s", h.ID, r.host, e.envelope)
		}
	}
	if emitted := len(h.Values()); last != emitted {
		l.world.Failf("%s at %s: the log ends at %d, want %d", h.ID, r.host, last, emitted)
	}
}

// checkView checks that the hub's stream, which outsiders read, has each value once and in order,
// soon.
func (l *Load) checkView(ctx context.Context, h *Hub) {
	begun, what := time.Now(), ""
	for ; time.Since(begun) < viewLimit; _ = sleep(ctx, time.Second) {
		p := l.world.Replicas[0].parts.Load()
		if p == nil {
			continue
		}
		if what = p.compareView(ctx, h); what == "" {
			return
		}
	}
	l.world.Failf("%s: stream: %s", h.ID, what)
}

// compareView returns what is wrong with a hub's stream, "" for nothing.
func (p *parts) compareView(ctx context.Context, h *Hub) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	getter, err := jsapi.New(p.shards.Shard(h.ID)).NewBatchGetter(pageSize)
	if err != nil {
		return err.Error()
	}
	defer getter.Close()
	tip, _ := p.journal.Tip(h.ID)
	for next, last := uint64(1), 0; next <= tip.Seq; {
		if err := getter.Request(jsapi.BatchRequest{
			Stream: streams.HubStream(h.ID), From: next, Messages: pageSize,
		}); err != nil {
			return err.Error()
		}
		messages, err := getter.Collect(ctx)
		if err != nil || len(messages) == 0 {
			return fmt.Sprintf("ends before %d, want %d: %v", next, tip.Seq, err)
		}
		for _, m := range messages {
			v := parseEvent(domain.EncodedEvent{Envelope: m.Data}).value
			if m.Sequence != next || v != 0 && v != last+1 {
				return fmt.Sprintf("has %d at %d, after %d at %d", v, m.Sequence, last, next-1)
			}
			if next++; v != 0 {
				last = v
			}
		}
	}
	return ""
}

// checkSeen checks that everything that tails have seen is stored, unchanged.
func (l *Load) checkSeen(h *Hub, stored []event) {
	there := map[string]bool{}
	for _, e := range stored {
		there[e.envelope] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.seen[h.ID] {
		if !there[e.envelope] {
			l.world.Failf("%s: a tail has seen what is not stored: %s", h.ID, e.envelope)
		}
	}
}

// checkCommands checks that the hub ran each command once, and every one that was answered.
func (l *Load) checkCommands(h *Hub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for value, runs := range h.runs {
		if runs != 1 {
			l.world.Failf("%s: the command with the value %s ran %d times", h.ID, value, runs)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.answers {
		if value, ok := strings.CutPrefix(key, string(h.ID)+"-"); ok && h.runs[value] == 0 {
			l.world.Failf("%s: command %s was answered, and did not run", h.ID, key)
		}
	}
}
