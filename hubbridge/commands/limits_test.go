package commands_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/streams/streamstest"
)

// TestCommandsPerHour: an organization may send only so many commands within an hour. Without a
// bound it could fill the event logs of its hubs with records of commands.
func TestCommandsPerHour(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	var later atomic.Bool
	p := cloud.replica("r1", func(s *setup) {
		s.PerHour = 3
		s.Now = func() time.Time {
			if later.Load() {
				return time.Now().Add(time.Hour)
			}
			return time.Now()
		}
	})
	for range 3 {
		cloud.wantAccepted(p.send(cloud.command("")))
	}
	_, err := p.send(cloud.command(""))
	wantCode(t, err, domain.CodeRateLimited)
	other := cloud.command("")
	other.OrgID = orgB
	cloud.wantAccepted(p.send(other))
	later.Store(true)
	cloud.wantAccepted(p.send(cloud.command("")))
	cloud.hub.wantRan(5, 5)
}

// TestSilentHub: all commands shared 16,384 slots, and one organization with a hub that never
// answers could hold each slot for ten seconds: none of its 17,000 commands was rejected, and a
// command of another organization waited 16 to 20 s.
func TestSilentHub(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	cloud.hub.answersAll("", true)
	victim := newHub(t, cloud.broker.Connect(t), "hub-dddd-eeee-ffff")
	p := cloud.replica("r1", hubTimeout(time.Minute))

	const many = 17_000
	var rejected, other atomic.Int64
	var attack sync.WaitGroup
	for i := range many {
		attack.Go(func() {
			_, err := p.send(cloud.command(fmt.Sprint("a", i)))
			if domain.CodeOf(err) == domain.CodeRateLimited {
				rejected.Add(1)
			} else {
				other.Add(1) // the replica has ended
			}
		})
	}
	streamstest.Eventually(
		t, "all commands beyond the limit of the hub are rejected",
		func() bool { return rejected.Load() == many-commands.CallLimits.PerID },
	)
	// All the others wait for the silent hub.
	c := cloud.command("v")
	c.OrgID, c.HubID = orgB, victim.id
	cloud.wantAccepted(p.send(c))
	p.stop()
	attack.Wait()
	if other.Load() != commands.CallLimits.PerID {
		t.Errorf("%d commands were accepted, want %d", other.Load(), commands.CallLimits.PerID)
	}
}
