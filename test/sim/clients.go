package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

const (
	// partBytes is the most that a client reads of the organization's feed at once.
	partBytes = 16 << 10
	// followTime bounds how long a client follows the organization's feed at one replica.
	followTime = 15 * time.Second
)

// orgReader is a client of the feed of the organization, from its oldest event on.
type orgReader struct {
	load  *Load
	name  string
	after string
	last  map[domain.HubID]int
}

// orgReader returns a client that reads the feed page by page and follows it, each time at any replica
// that is ready.
func (l *Load) orgReader(ctx context.Context, name string) func(*rand.Rand) {
	r := &orgReader{load: l, name: name, last: map[domain.HubID]int{}}
	return func(random *rand.Rand) {
		p := l.world.ready(random.Intn(len(l.world.Replicas)))
		switch {
		case p == nil:
		case r.after == "" || random.Intn(2) == 0: // without a position, followers get new events only
			r.page(ctx, p)
		default:
			r.follow(ctx, p, time.Duration(random.Int63n(int64(followTime))))
		}
	}
}

// page reads what there is, in parts of a page.
func (r *orgReader) page(ctx context.Context, p *parts) {
	w := r.load.world
	acked := map[*Hub]int{}
	for _, h := range w.Hubs {
		acked[h] = h.ackedValues()
	}
	call := r.load.begin(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for more := true; more; {
		var page domain.EventPage
		err := p.call(ctx, func(ctx context.Context) (err error) {
			page, err = p.feed.Part(
				ctx, w.OrgID, domain.EventFilter{}, r.after, pageSize, partBytes, 0,
			)
			return err
		})
		if err != nil {
			call.failed(r.name+": page of the feed", err)
			return
		}
		r.take(page.Events)
		r.after, more = page.Next, page.HasMore
	}
	for h, n := range acked {
		if r.last[h.ID] < n {
			w.Failf("%s: the feed's page ends at %d of %s, of which %d was acknowledged before",
				r.name, r.last[h.ID], h.ID, n)
		}
	}
}

// follow follows the feed for a time.
func (r *orgReader) follow(ctx context.Context, p *parts, most time.Duration) {
	call := r.load.begin(ctx)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	var stream interface {
		Ready() <-chan struct{}
		Next(context.Context, int) ([]domain.EncodedEvent, error)
		Close()
	}
	err := p.call(ctx, func(ctx context.Context) (err error) {
		stream, err = p.feed.Follow(ctx, r.load.world.OrgID, domain.EventFilter{}, r.after)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			call.failed(r.name+": follow the feed", err)
		}
		return
	}
	defer stream.Close()
	for {
		select {
		case <-stream.Ready():
		case <-ctx.Done():
			return
		}
		events, err := stream.Next(ctx, pageSize)
		if err != nil || p.ctx.Err() != nil {
			r.load.checkError(r.name+": follow the feed", err)
			return
		}
		r.take(events)
		if n := len(events); n > 0 {
			r.after = events[n-1].Cursor
		}
	}
}

// take checks that the feed has each hub's values in order and without a gap.
func (r *orgReader) take(events []domain.EncodedEvent) {
	for _, e := range events {
		seen := parseEvent(e)
		if seen.kind == "feed.gap" {
			r.load.world.Failf("%s: the feed has %s", r.name, seen.envelope)
		}
		if seen.value == 0 {
			continue
		}
		if last := r.last[seen.hub]; seen.value != last+1 {
			r.load.world.Failf("%s: the feed has %d of %s after %d", r.name, seen.value, seen.hub, last)
		}
		r.last[seen.hub] = seen.value
		r.load.reached(r.name, seen.hub, seen.value)
	}
}

// keyHolder returns a client that creates a key at one replica and revokes it at another: every
// replica that answers knows it in between, and none after.
func (l *Load) keyHolder(ctx context.Context) func(*rand.Rand) {
	return func(random *rand.Rand) {
		if id := l.createKey(ctx, random.Intn(len(l.world.Replicas))); id != "" {
			_ = sleep(ctx, time.Duration(random.Int63n(int64(3*time.Second))))
			l.revokeKey(ctx, random.Intn(len(l.world.Replicas)), id)
		}
	}
}

// createKey creates a key at a replica, or at the next that is ready. It returns its id, "" if that
// was not acknowledged.
func (l *Load) createKey(ctx context.Context, at int) (id string) {
	created := l.change(ctx, at, "create a key", func(ctx context.Context, s *directory.Service) (err error) {
		id, _, err = s.CreateKey(
			ctx, operator, l.world.OrgID, "sim", []domain.Scope{domain.ScopeHubsRead}, domain.KeyLimits{},
		)
		return err
	})
	if !created {
		return ""
	}
	l.checkKey(ctx, id, true)
	return id
}

// revokeKey revokes a key at a replica, or at the next that is ready.
func (l *Load) revokeKey(ctx context.Context, at int, id string) {
	if l.change(ctx, at, "revoke a key", func(ctx context.Context, s *directory.Service) error {
		return s.RevokeKey(ctx, operator, id, l.world.OrgID)
	}) {
		l.checkKey(ctx, id, false)
	}
}

// change changes the directory at a replica, or at the next that is ready, and reports whether that
// was acknowledged.
func (l *Load) change(
	ctx context.Context, at int, what string, do func(context.Context, *directory.Service) error,
) bool {
	p := l.world.ready(at)
	if p == nil {
		return false
	}
	call := l.begin(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.call(ctx, func(ctx context.Context) error { return do(ctx, p.directory) })
	if err != nil {
		call.failed(what, err)
	}
	return err == nil
}

// checkKey checks whether each replica that answers knows a key.
func (l *Load) checkKey(ctx context.Context, id string, want bool) {
	for _, r := range l.world.Replicas {
		p := r.parts.Load()
		if p == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		known := false
		err := p.call(ctx, func(context.Context) error {
			_, known = p.index.Key(id)
			return nil
		})
		cancel()
		if err == nil && known != want {
			l.world.Failf("key %s: known is %t at %s, want %t", id, known, r.host, want)
		}
	}
}

// siteMaker returns a client that creates sites with idempotency keys, each several times, and at all
// replicas at the same moment: the answer is the same.
func (l *Load) siteMaker(ctx context.Context) func(*rand.Rand) {
	made := 0
	return func(random *rand.Rand) {
		made++
		name, former := fmt.Sprint("site ", made), ""
		for range 2 + random.Intn(2) {
			answers := make([]string, len(l.world.Replicas))
			var calls sync.WaitGroup
			for i := range answers {
				calls.Go(func() { answers[i] = l.createSite(ctx, l.world.ready(i), name) })
			}
			calls.Wait()
			for _, answer := range answers {
				if answer != "" && former != "" && former != answer {
					l.world.Failf("%s: answered %s, and before %s", name, answer, former)
				}
				former = cmp.Or(answer, former)
			}
		}
	}
}

// createSite creates a site under its name as the idempotency key. It returns the answer, "" for none.
func (l *Load) createSite(ctx context.Context, p *parts, name string) string {
	if p == nil {
		return ""
	}
	call := l.begin(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var answer []byte
	err := p.call(ctx, func(ctx context.Context) (err error) {
		answer, _, err = p.keys.Once(
			ctx, l.world.OrgID, name, []byte(name),
			func(ctx context.Context, id string) ([]byte, error) {
				site, err := p.directory.CreateSiteWithID(ctx, operator, l.world.OrgID, id, name)
				if err != nil {
					return nil, err
				}
				return json.Marshal(site)
			},
		)
		return err
	})
	if err != nil {
		call.failed("create a site", err)
		return ""
	}
	return string(answer)
}
