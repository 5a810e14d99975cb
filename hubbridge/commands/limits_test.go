package commands_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/streams/once"
	"hubcloud/streams/streamstest"
)

// TestCommandsPerHour: an organization may send only so many commands within an hour. Without a
// bound it could fill the event logs of its hubs with records of commands.
func TestCommandsPerHour(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	var later atomic.Bool
	p := cloud.replica("r1", func(cfg *commands.Config, _ *once.Config) {
		cfg.PerHour = 3
		cfg.Now = func() time.Time {
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

	sent := 0
	send := func() time.Duration {
		sent++
		c := cloud.command(fmt.Sprint("v", sent))
		c.OrgID, c.HubID = orgB, victim.id
		began := time.Now()
		cloud.wantAccepted(p.send(c))
		return time.Since(began)
	}
	median := func() time.Duration {
		var took []time.Duration
		for range 200 {
			took = append(took, send())
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	quiet := median()

	const many = 17_000
	var rejected, other atomic.Int64
	var attack sync.WaitGroup
	for i := range many {
		attack.Go(func() {
			_, err := p.send(cloud.command(fmt.Sprint("a", i)))
			switch {
			case err != nil && domain.CodeOf(err) == domain.CodeRateLimited:
				rejected.Add(1)
			default:
				other.Add(1) // the replica has ended
			}
		})
	}
	began := time.Now()
	first := send()
	streamstest.Eventually(
		t, "all commands beyond the limit of the hub are rejected",
		func() bool { return rejected.Load() == many-commands.CallLimits.PerID },
	)
	t.Logf(
		"rejected after %v; another organization's first command took %v", time.Since(began), first,
	)
	busy := median()
	t.Logf(
		"median of the other organization: %v in quiet, %v beside %d commands to a silent hub", quiet,
		busy, many,
	)
	if busy > 10*quiet+time.Second {
		t.Errorf("median of the other organization: %v, in quiet %v", busy, quiet)
	}
	p.stop()
	attack.Wait()
	if other.Load() != commands.CallLimits.PerID {
		t.Errorf("%d commands were accepted, want %d", other.Load(), commands.CallLimits.PerID)
	}
}
