package statelog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/domain"
)

func orgOf(hub domain.HubID) string { return string(hub[:5]) }

// slowLogs are logs whose folds do not end.
type slowLogs struct {
	Logs
	asked chan domain.HubID
}

func (l slowLogs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	l.asked <- hub
	<-ctx.Done()
	return 0, ctx.Err()
}

// One key's questions for past states made everybody wait. Now others' are served meanwhile.
func TestPastStatesAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := slowLogs{asked: make(chan domain.HubID, 100)}
		h := NewHistory(logs, time.Hour, orgOf, nil, nil)
		ask := func(key string, hub domain.HubID) {
			// These wait until the test ends, with an error that tells nothing.
			go func() { _, _ = h.StateAt(t.Context(), key, hub, time.Now()) }()
			synctest.Wait()
		}
		for range maxWaiting {
			ask("greedy", "orga-1")
		}
		ask("other", "orga-2")
		ask("third", "orga-3")
		ask("innocent", "orgb-1")
		var orgs []string
		for len(logs.asked) > 0 {
			orgs = append(orgs, orgOf(<-logs.asked))
		}
		if len(orgs) != 3 || orgs[2] != "orgb-" {
			t.Errorf("got folds of %q, want two of one organization, and one of the other", orgs)
		}
	})
}
