package statelog

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// maxDoubtPause is the longest time between two reads of a hub that stays in doubt, as one with
// more devices than are kept does.
const maxDoubtPause = time.Hour

// answerLag is within how long InDoubt knows an answer that was stored.
const answerLag = 10 * time.Second

// doubt is that a hub was asked because it is in doubt.
type doubt struct {
	reads int
	next  time.Time
}

// runDoubts asks the hubs that are in doubt until ctx ends. While InDoubt fails, nothing is asked.
func (k *Keeper) runDoubts(ctx context.Context) error {
	doubts := map[domain.HubID]doubt{}
	for k.cfg.InDoubt != nil && streams.Sleep(ctx, k.cfg.DoubtEvery) {
		ids, err := k.cfg.InDoubt(ctx)
		if err != nil {
			continue
		}
		still := make(map[domain.HubID]doubt, len(ids))
		for _, id := range ids {
			d, now := doubts[id], k.cfg.Now()
			if k.cfg.Serves(id) && k.cfg.Online(id) && !now.Before(d.next) && k.idle(id) {
				k.request(id, 0)
				d.next = now.Add(min(k.cfg.MinInterval<<min(d.reads, 20), maxDoubtPause))
				d.reads++
			}
			still[id] = d
		}
		doubts = still
	}
	return nil
}

// idle reports whether a hub is neither being asked nor to be asked, and was not asked so lately
// that InDoubt need not know the answer yet.
func (k *Keeper) idle(id domain.HubID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.asks[id]
	if a == nil {
		return true
	}
	readAt := a.notBefore.Add(-k.cfg.MinInterval)
	return a.done && !a.running && k.cfg.Now().Sub(readAt) > min(answerLag, k.cfg.MinInterval)
}
