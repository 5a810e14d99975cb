package backup

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestBackupWhileWriting writes backups while presence, hubs and events are written. Each backup
// has every key, even one that is written all the time, no checkpoint of a hub that its directory
// does not have, and all events that were acknowledged before it began.
func TestBackupWhileWriting(t *testing.T) {
	t.Parallel()
	const keys, batch = 200, 5
	i := newTestInstallation(t, 2, 1)
	sending := i.hubs[0]
	for n := range keys {
		i.put(i.Presence, fmt.Sprintf("key-%d", n), "0")
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	defer writers.Wait()
	defer close(stop)
	repeat := func(write func(n int)) {
		writers.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					write(n)
				}
			}
		})
	}
	for w := range 4 {
		repeat(func(n int) {
			i.put(i.Presence, fmt.Sprintf("key-%d", (n*4+w)%keys), strconv.Itoa(n))
		})
	}
	var added atomic.Int64
	repeat(func(n int) {
		i.addHub(100+n, 2)
		added.Add(1)
	})
	var acknowledged atomic.Uint64
	acknowledged.Store(1)
	repeat(func(int) {
		acknowledged.Store(i.appendEvents(sending, acknowledged.Load(), batch))
	})
	for round := range 3 {
		streamstest.Eventually(t, "three more hubs are added", func() bool {
			return added.Load() >= int64(3*(round+1))
		})
		before := acknowledged.Load()
		dir, _ := i.writeBackup(true)
		to := restoreBackup(t, dir)
		presence := values(t, to.Presence)
		for n := range keys {
			if presence[fmt.Sprintf("key-%d", n)] == "" {
				t.Errorf("round %d: key-%d is missing", round, n)
			}
		}
		for hub := range values(t, to.Checkpoints) {
			state, _, err := to.Directory.Hub(t.Context(), domain.HubID(hub))
			if err != nil || state.OrgID == "" {
				t.Errorf(
					"round %d: hub %s has a checkpoint, want it in the directory: got %+v, error %v",
					round, hub, state, err,
				)
			}
		}
		if tip, _ := to.Journals.Tip(sending); tip.Seq < before || (tip.Seq-1)%batch != 0 {
			t.Errorf(
				"round %d: the log ends with %d, want %d or later, and no part of a batch", round,
				tip.Seq, before,
			)
		}
	}
}
