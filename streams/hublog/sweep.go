package hublog

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// maxSweep is the longest pause between two sweeps, and about how soon the readers of a log
	// that is begun anew are ended.
	maxSweep = 250 * time.Millisecond
	// maxUnchecked is how long a log with readers goes without being compared with its stream.
	maxUnchecked = 4 * time.Second
	// keptTails is how many tails a shard keeps for readers that may come back; with more, those
	// without readers go at once.
	keptTails = 2048
	// sweepChecks is the most checks that one sweep begins in a shard.
	sweepChecks = 64
)

// ringBudget is what all rings share.
type ringBudget struct {
	limit int64
	used  atomic.Int64
	tails atomic.Int64
}

// tooMuch reports whether a ring of that many bytes has to give some up: together they have too
// many, and it has more than its part.
func (b *ringBudget) tooMuch(bytes int64) bool {
	return b.used.Load() > b.limit && bytes > b.limit/max(b.tails.Load(), 1)
}

// Run keeps the tails in order until ctx ends, and returns nil then: it ends those of logs that
// were begun anew, closes those without readers, and finds out what the feed may have lost. Reading
// works without it, but a message that the feed loses while no other follows it is only found by
// the next page.
func (l *Logs) Run(ctx context.Context) error {
	// Short retentions, as tests have them, need positions that are renewed as often.
	unchecked := min(maxUnchecked, max(l.cfg.Retention/8, 20*time.Millisecond))
	ticker := time.NewTicker(min(maxSweep, max(unchecked/2, 10*time.Millisecond)))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.ctx.Done():
			return nil
		case now := <-ticker.C:
			for _, s := range l.shards {
				s.sweep(now, unchecked)
			}
		}
	}
}

func (s *shard) sweep(now time.Time, unchecked time.Duration) {
	if n := s.reconnections(); n != s.reconnects {
		s.reconnects = n
		s.suspect.Store(true)
	}
	suspect := s.suspect.Swap(false)
	begun := 0
	all := s.all()
	idle := now.Add(-s.logs.cfg.TailIdle)
	if len(all) > keptTails {
		idle = now
	}
	lost := len(all) > 0 && s.lost()
	for _, t := range all {
		if lost {
			s.end(t, ErrLost)
			continue
		}
		epoch, err := s.logs.epoch(t.hub)
		if err != nil {
			s.end(t, err) // the hub has no owner any more
			continue
		}
		if epoch.ID != t.epoch.ID {
			s.end(t, ErrLogEnded)
			continue
		}
		if t.idleSince(idle) {
			s.endIdle(t, idle)
			continue
		}
		t.trimToBudget()
		if suspect {
			t.distrust()
		}
		if begun < sweepChecks && t.due(now.Add(-unchecked)) {
			t.checkSoon(false)
			begun++
		}
	}
}

// trimToBudget gives up what others need of the rings' bytes.
func (t *tail) trimToBudget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
}

// distrust makes the next sweeps check the tail as soon as they can.
func (t *tail) distrust() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checks.began = time.Time{}
}
