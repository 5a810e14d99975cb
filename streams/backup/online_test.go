package backup

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// TestWhileWritten takes backups while everything is written to. A key of a bucket that is written
// all the time is in each of them, and nothing in a backup speaks of something that is not in its
// directory.
func TestWhileWritten(t *testing.T) {
	t.Parallel()
	const keys = 200
	i := newInstallation(t, 2, 1)
	sending := i.hubs[0]
	for n := range keys {
		i.put(i.Presence, fmt.Sprintf("key-%d", n), "0")
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	write := func(once func(n int)) {
		writers.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
					once(n)
				}
			}
		})
	}
	for w := range 4 {
		write(
			func(n int) { i.put(i.Presence, fmt.Sprintf("key-%d", (n*4+w)%keys), strconv.Itoa(n)) },
		)
	}
	var added atomic.Int64
	write(func(n int) {
		i.addHub(100+n, 2)
		added.Add(1)
	})
	last := uint64(1)
	write(func(int) { last = i.append(sending, last, 5) })
	deadline := time.After(time.Minute)
	for round := range 3 {
		for added.Load() < int64(3*(round+1)) {
			select {
			case <-deadline:
				t.Fatal("nothing is written")
			case <-time.After(time.Millisecond):
			}
		}
		dir, _ := i.take(true)
		to := restored(t, dir)
		presence, ledger := values(t, to.Presence), values(t, to.Ledger)
		for n := range keys {
			if presence[fmt.Sprintf("key-%d", n)] == "" {
				t.Errorf("round %d: key %d is lost", round, n)
			}
		}
		for hub := range ledger {
			state, _, err := to.service.Hub(t.Context(), domain.HubID(hub))
			if err != nil || state.OrgID == "" {
				t.Errorf(
					"round %d: the ledger knows hub %s, and the directory does not: %v", round, hub,
					err,
				)
			}
		}
		log, err := jsapi.New(to.conns.Shard(sending)).Info(t.Context(), streams.HubStream(sending))
		if err != nil || log.State.Msgs < 1 || (log.State.Msgs-1)%5 != 0 {
			t.Errorf(
				"round %d: the log of a hub that sends has %d events, %v: a message of five is "+
					"there wholly or not at all",
				round,
				log.State.Msgs,
				err,
			)
		}
	}
	close(stop)
	writers.Wait()
}
