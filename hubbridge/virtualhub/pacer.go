package virtualhub

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// pacer drives members: each when it is due, or kicked.
type pacer struct {
	agenda agenda // of run alone

	mu     sync.Mutex
	kicked map[*member]struct{}
	bell   chan struct{}
}

func newPacer() *pacer {
	return &pacer{
		kicked: map[*member]struct{}{}, bell: make(chan struct{}, 1),
	}
}

// kick has a member driven soon. It does not block.
func (p *pacer) kick(m *member) {
	p.mu.Lock()
	p.kicked[m] = struct{}{}
	p.mu.Unlock()
	nudge(p.bell)
}

// spread is a random part of an interval, so that members that begin together do not emit together.
func (p *pacer) spread(interval time.Duration) time.Duration { return rand.N(interval + 1) }

func (p *pacer) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.bell:
		}
		for _, m := range p.take() {
			p.drive(m, time.Now())
		}
		now := time.Now()
		for len(p.agenda) > 0 && !now.Before(p.agenda[0].due) && ctx.Err() == nil {
			p.drive(p.agenda[0], now)
		}
		if len(p.agenda) > 0 {
			timer.Reset(max(0, time.Until(p.agenda[0].due)))
		} else {
			timer.Stop()
		}
	}
}

// take takes the members that were kicked.
func (p *pacer) take() []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	members := make([]*member, 0, len(p.kicked))
	for m := range p.kicked {
		members = append(members, m)
	}
	clear(p.kicked)
	return members
}

// drive drives a member and notes when it is due again.
func (p *pacer) drive(m *member, now time.Time) {
	switch m.due = m.drive(now); {
	case m.due.IsZero() && m.place >= 0:
		heap.Remove(&p.agenda, m.place)
	case m.due.IsZero():
	case m.place >= 0:
		heap.Fix(&p.agenda, m.place)
	default:
		heap.Push(&p.agenda, m)
	}
}

// agenda is a heap of members by when they are due.
type agenda []*member

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *agenda) Push(x any) {
	m := x.(*member)
	m.place = len(*a)
	*a = append(*a, m)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	m := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	m.place = -1
	return m
}
