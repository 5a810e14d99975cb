package feed

import (
	"context"
	"time"
)

const (
	// maxSweep is the longest pause between two sweeps. The readers of a log end about that soon
	// after a new epoch has begun.
	maxSweep = 250 * time.Millisecond
	// maxUnchecked is how long a log with readers goes without a check.
	maxUnchecked = 4 * time.Second
	// keptTails is how many tails a shard keeps for readers that may return. With more tails, those
	// without readers are removed at once.
	keptTails = 2048
	// sweepChecks is the most checks that one sweep starts in a shard.
	sweepChecks = 64
)

// Run sweeps the tails until ctx ends, and returns nil then: it ends the tails of former epochs,
// removes those without readers, and renews the positions of quiet logs.
func (l *Logs) Run(ctx context.Context) error {
	// With a short retention, as in tests, positions must be renewed more often.
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
	started := 0
	all := s.all()
	idle := now.Add(-s.logs.cfg.TailIdle)
	if len(all) > keptTails {
		idle = now
	}
	lost := len(all) > 0 && s.lost()
	for _, t := range all {
		if lost {
			s.remove(t, ErrLost)
			continue
		}
		epoch, err := s.logs.epoch(t.hub)
		if err != nil {
			s.remove(t, err) // the hub was released
			continue
		}
		if epoch.ID != t.epoch.ID {
			s.remove(t, ErrEpochEnded)
			continue
		}
		if t.IdleSince(idle) {
			s.removeIdle(t, idle)
			continue
		}
		t.TrimToBudget()
		if started < sweepChecks && t.checkSince(now.Add(-unchecked)) {
			started++
		}
	}
}
