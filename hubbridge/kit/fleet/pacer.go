package fleet

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"hubcloud/hubbridge/kit/hub/notify"
)

// pacer drives members, each when it is due or woken.
type pacer struct {
	schedule schedule // used by run only

	mu    sync.Mutex
	woken map[*member]struct{}
	bell  chan struct{} // capacity of one: woken is not empty
}

func newPacer() *pacer {
	return &pacer{woken: map[*member]struct{}{}, bell: make(chan struct{}, 1)}
}

// wake makes the pacer drive m soon. It does not block.
func (p *pacer) wake(m *member) {
	p.mu.Lock()
	p.woken[m] = struct{}{}
	p.mu.Unlock()
	notify.Wake(p.bell)
}

// randomPart returns a random part of an interval, so that hubs that connect together do not emit
// together.
func randomPart(interval time.Duration) time.Duration { return rand.N(interval + 1) }

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
		for _, m := range p.takeWoken() {
			p.drive(m, time.Now())
		}
		now := time.Now()
		for len(p.schedule) > 0 && !now.Before(p.schedule[0].due) && ctx.Err() == nil {
			p.drive(p.schedule[0], now)
		}
		if len(p.schedule) > 0 {
			timer.Reset(max(0, time.Until(p.schedule[0].due)))
		} else {
			timer.Stop()
		}
	}
}

// takeWoken returns and forgets the woken members.
func (p *pacer) takeWoken() []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	members := make([]*member, 0, len(p.woken))
	for m := range p.woken {
		members = append(members, m)
	}
	clear(p.woken)
	return members
}

// drive drives a member and schedules its next turn.
func (p *pacer) drive(m *member, now time.Time) {
	switch m.due = m.drive(now); {
	case m.due.IsZero() && m.heapIndex >= 0:
		heap.Remove(&p.schedule, m.heapIndex)
	case m.due.IsZero():
	case m.heapIndex >= 0:
		heap.Fix(&p.schedule, m.heapIndex)
	default:
		heap.Push(&p.schedule, m)
	}
}

// schedule is a heap of members ordered by due.
type schedule []*member

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].heapIndex, s[j].heapIndex = i, j
}

func (s *schedule) Push(x any) {
	m := x.(*member)
	m.heapIndex = len(*s)
	*s = append(*s, m)
}

func (s *schedule) Pop() any {
	last := len(*s) - 1
	m := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	m.heapIndex = -1
	return m
}
