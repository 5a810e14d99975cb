package views

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// TestCrash cuts Views off at each step of their work, as a crash of the process would: nothing
// reaches the broker from then on. The next Views must make every view complete.
func TestCrash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Linger = time.Millisecond
	all := hubs(5)
	f.start()
	f.commit(all...)
	f.flush()
	f.stop()
	newHubs := len(all)
	for _, step := range []string{
		"add", "update", "create", "send", "answer", "inspect", "extend", "delete", "audited",
	} {
		for occurrence := 1; occurrence <= 2; occurrence++ {
			t.Run(fmt.Sprintf("%s %d", step, occurrence), func(t *testing.T) {
				f.TB = t
				// Two views to be written anew, two to be extended and updated, two of new hubs,
				// and one with a record of a former writer of the group, below.
				f.deleteView(all[0])
				f.deleteView(all[1])
				for _, id := range all[2:4] {
					f.deleteView(id)
					f.makeView(id, 1)
				}
				all = append(all[:5:5], hub(newHubs), hub(newHubs+1))
				newHubs += 2

				own := f.broker.Connect(t)
				crashed := make(chan struct{})
				crash := sync.OnceFunc(func() {
					own.Close()
					close(crashed)
				})
				var mu sync.Mutex
				count := 0
				f.hook = func(reached string) {
					mu.Lock()
					defer mu.Unlock()
					if reached == step {
						if count++; count == occurrence {
							crash()
						}
					}
				}
				f.own = own
				f.start()
				c := f.commit(all[4], all[4])
				msg := newMessage()
				msg.set(&c.Records[0])
				f.store(all[4], &msg.Msg)
				streamstest.Eventually(t, "the step is taken", func() bool {
					f.commit(all...)
					select {
					case <-crashed:
						return true
					default:
					}
					// The audit may have repaired the new views before they were prepared.
					all = append(all, hub(newHubs))
					newHubs++
					return false
				})
				f.commit(all...)
				f.backlog.stop() // a crashed process does not write the rest at its end
				f.stop()

				f.hook, f.own = nil, nil
				f.start()
				f.checkAll(all...)
				f.stop()
			})
		}
	}
}
