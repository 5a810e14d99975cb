package sim

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
)

const (
	shards, groups = 2, 2
	// startTimeout bounds the start of a world, without faults.
	startTimeout = 2 * time.Minute
)

// replicaHosts are the hosts of the service's replicas.
var replicaHosts = []string{"10.0.1.1", "10.0.1.2"}

// operator is the origin of what the simulator changes in the directory.
var operator = domain.Origin{Actor: domain.Actor{Kind: domain.ActorOperator, ID: "sim"}}

// World is a whole installation with its hubs.
type World struct {
	Trace    *Trace
	Network  *Network
	Brokers  *Brokers
	Replicas []*Replica
	Hubs     []*Hub
	OrgID    string
	Limits   Limits
	// SlowestElection is the longest time after a heal until each stream had a leader, and SlowestAck
	// the longest from then on until everything from before the heal was acknowledged.
	SlowestElection, SlowestAck time.Duration

	load *Load
	// calm is when the last heal was over, in nanoseconds; 0 since the next fault.
	calm     atomic.Int64
	seeds    *rand.Rand
	mu       sync.Mutex
	failures []string
	commits  map[commit]journal.Commit // without records
	running  sync.WaitGroup
	stopHubs context.CancelFunc
}

// commit is the place of a commit of a journal.
type commit struct {
	group int
	seq   uint64
}

// Limits is how long after each stream has had a leader again every hub's status is right, and
// everything from before the heal is acknowledged.
type Limits struct{ Status, Acks time.Duration }

// NewWorld starts an installation with hubs that are connected. Call Stop at the end, also after an
// error.
func NewWorld(t testing.TB, seed int64, trace *Trace, hubs int) (*World, error) {
	w := &World{
		Trace: trace, Network: NewNetwork(seed), seeds: rand.New(rand.NewSource(seed)),
		commits: map[commit]journal.Commit{},
	}
	w.Brokers = NewBrokers(t, w.Network, trace, shards)
	for _, host := range brokerHosts {
		w.Brokers.Start(host)
	}
	for _, host := range replicaHosts {
		r := &Replica{host: host, world: w}
		w.Replicas = append(w.Replicas, r)
		r.Start()
	}
	hubsCtx, stop := context.WithCancel(context.Background())
	w.stopHubs = stop
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return w, w.populate(ctx, hubsCtx, hubs)
}

// populate creates an organization with hubs.
func (w *World) populate(ctx, hubsCtx context.Context, hubs int) error {
	for _, r := range w.Replicas {
		for r.parts.Load() == nil {
			if err := sleep(ctx, time.Second); err != nil {
				return fmt.Errorf("replica %s is not ready: %w", r.host, err)
			}
		}
	}
	service := w.Replicas[0].parts.Load().directory
	var err error
	if w.OrgID, _, err = service.CreateOrg(ctx, operator, "Org", "owner@example.org"); err != nil {
		return err
	}
	site, err := service.CreateSite(ctx, operator, w.OrgID, "Site")
	if err != nil {
		return err
	}
	for n := range hubs {
		h, err := newHub(w, n+1)
		if err != nil {
			return err
		}
		hash := domain.HashEnrolmentSecret(secret)
		if err := service.RegisterHub(ctx, operator, h.ID, hash); err != nil {
			return err
		}
		w.Hubs = append(w.Hubs, h)
		w.running.Go(func() { h.watch(hubsCtx) })
		w.running.Go(func() {
			_ = h.lib.Run(hubsCtx) // its context's error
			_ = h.lib.Close()      // it has no files
		})
	}
	for _, h := range w.Hubs {
		if err := h.lib.WaitConnected(ctx); err != nil {
			return fmt.Errorf("%s does not connect: %w", h.ID, err)
		}
		add := domain.AddHub{OrgID: w.OrgID, HubID: h.ID, SiteID: site.ID}
		if _, err := service.AddHub(ctx, operator, add); err != nil {
			return fmt.Errorf("add %s: %w", h.ID, err)
		}
	}
	return nil
}

// Stop ends everything.
func (w *World) Stop() {
	w.stopHubs()
	w.running.Wait()
	for _, r := range w.Replicas {
		r.Kill()
	}
	w.Brokers.Stop()
}

// Random returns a new source of random numbers, for one goroutine.
func (w *World) Random() *rand.Rand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return rand.New(rand.NewSource(w.seeds.Int63()))
}

// Failf records that a promise was broken.
func (w *World) Failf(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	w.Trace.Add("CHECK", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, text)
}

// Failures returns the broken promises so far.
func (w *World) Failures() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failures
}

// noteCommits checks that a journal has one writer at a time: each term begins with a commit of its
// own, which ends all terms before it, and all replicas see the same. Times do not go back.
func (w *World) noteCommits(group int, commits []journal.Commit) {
	for _, c := range commits {
		w.mu.Lock()
		before, follows := w.commits[commit{group, c.Seq - 1}]
		known, seen := w.commits[commit{group, c.Seq}]
		w.commits[commit{group, c.Seq}] = journal.Commit{Term: c.Term, Time: c.Time}
		w.mu.Unlock()
		if seen && known.Term != c.Term || follows && c.Term != before.Term && c.Term != c.Seq ||
			c.Term > c.Seq || follows && c.Term < before.Term {
			w.Failf("journal %d: commit %d is of term %d, after %d", group, c.Seq, c.Term, before.Term)
		}
		if follows && c.Time.Before(before.Time) {
			w.Failf("journal %d: commit %d is of %v, after %v", group, c.Seq, c.Time, before.Time)
		}
	}
}

// ready returns a replica that is ready: the first or, if that is not, the next; nil for none.
func (w *World) ready(first int) *parts {
	for i := range w.Replicas {
		if p := w.Replicas[(first+i)%len(w.Replicas)].parts.Load(); p != nil {
			return p
		}
	}
	return nil
}

// call calls a replica as a handler of HTTP does, once the replica has confirmed that it is not cut
// off. What a process answers that has ended meanwhile gets lost.
func (p *parts) call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	p.awaitRunning()
	defer p.awaitRunning()
	if err := p.confirm(ctx); err != nil {
		return err
	}
	if err := f(ctx); err != nil {
		return err
	}
	return p.ctx.Err()
}
