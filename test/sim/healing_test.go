package sim

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
)

const (
	// outage is how long a replica is cut off in TestHealing.
	outage = 20 * time.Second
	// isolationTime is how long a server is isolated: longer than a replica takes to hold hubs for gone
	// whose server it cannot reach.
	isolationTime = 45 * time.Second
	// moveLimit is how long the groups of a replica that is cut off may be without another one.
	moveLimit = 5 * time.Second
	// clockAhead is how far the clock of that replica is ahead.
	clockAhead = time.Minute
	// interruption is how long the routes of a server are interrupted: shorter than it takes replicas
	// to leave the server.
	interruption = time.Second
	// leaveLimit is how long replicas and hubs may stay at an isolated server.
	leaveLimit = 3 * time.Second
)

// TestHealing measures how a cluster copes with a server that is isolated from the other two, though
// hubs and replicas still reach it, and with a replica that is cut off from all servers:
//
//	make sim SEEDS=20 SIM="-test.run=TestHealing"
//
// Before, it switches a hub off while the routes of its server are interrupted for a moment. It prints
// the longest times: until replicas have left the server; until its hubs are sent away, and from
// their reconnect to the first ack; until the acks of values that the other hubs emitted meanwhile;
// and until the groups of the replica are served by the other one. It fails if one of these takes too
// long, if a replica has a wrong status of a hub ten seconds later, also of one that was switched off
// at the server, if not one replica serves the groups in the end, if a hub that says hello counts as
// one that does not, or for what TestSim checks of what was stored and seen.
func TestHealing(t *testing.T) {
	bubble(t, *seed, func(t *testing.T, trace *Trace) {
		w, err := NewWorld(t, *seed, trace, 12)
		defer w.Stop()
		if err != nil {
			t.Fatalf("start: %v", err)
		}
		w.Limits.Status = *status
		load := StartLoad(w)
		defer load.Stop()
		random := rand.New(rand.NewSource(*seed))
		_ = sleep(t.Context(), 5*time.Second)
		w.checkInterrupted(t.Context())
		_ = sleep(t.Context(), 15*time.Second)
		isolated := w.measureIsolated(t.Context(), pick(random, brokerHosts))
		_ = sleep(t.Context(), 40*time.Second)
		moved := w.measureMove(t.Context(), random.Intn(len(w.Replicas)))
		t.Logf(
			"seed %d: left %.1f, sent away %.1f, acked there %.1f, acked elsewhere %.1f, moved %.1f",
			*seed, isolated.left.Seconds(), isolated.sentAway.Seconds(), isolated.there.Seconds(),
			isolated.elsewhere.Seconds(), moved.Seconds(),
		)
		if isolated.left > leaveLimit || isolated.sentAway > leaveLimit {
			t.Errorf("replicas and hubs must leave within %v", leaveLimit)
		}
		if moved > moveLimit {
			t.Errorf("groups must move within %v", moveLimit)
		}
		load.Stop()
		_ = sleep(t.Context(), settle)
		load.Check(t.Context())
		if strings.Contains(trace.Extract(), "reason=no_hello") {
			t.Error("a hub that says hello counts as one that does not")
		}
		for _, failure := range w.Failures() {
			t.Error(failure)
		}
	})
}

// checkInterrupted interrupts the routes of a server while one of its hubs is switched off: what the
// server reports of that reaches no replica.
func (w *World) checkInterrupted(ctx context.Context) {
	for _, h := range w.Hubs {
		at := h.at()
		hears := func(r *Replica) bool { return r.parts.Load().shards.Sys.ConnectedServerName() == at }
		if at == "" || slices.ContainsFunc(w.Replicas, hears) {
			continue
		}
		w.Trace.Add("FAULT", "routes of broker "+at+" interrupted, "+h.host+" switched off")
		w.Network.Kill(h.host)
		w.interrupt(at, interruption)
		if w.awaitElected(ctx) {
			_ = sleep(ctx, w.Limits.Status)
			w.checkStatus()
		}
		w.Network.Boot(h.host)
		return
	}
}

// isolation is what measureIsolated measures.
type isolation struct{ left, sentAway, there, elsewhere time.Duration }

// measureIsolated isolates a server from the other servers.
func (w *World) measureIsolated(ctx context.Context, server string) (m isolation) {
	for _, other := range brokerHosts {
		w.Network.Cut(server, other)
		w.Network.Cut(other, server)
	}
	w.Trace.Add("FAULT", "broker "+server+" isolated")
	begun := time.Now()
	there := map[domain.HubID]bool{} // hubs that have not left the server
	var off *Hub                     // one of them that is switched off
	for _, h := range w.Hubs {
		switch {
		case h.at() != server:
		case off == nil:
			off = h
			w.Network.Kill(h.host)
		default:
			there[h.ID] = true
		}
	}
	again := map[*Hub]time.Time{} // when hubs have reached another server
	for time.Since(begun) < isolationTime {
		_ = sleep(ctx, sample)
		for _, r := range w.Replicas {
			if p := r.parts.Load(); p != nil && slices.ContainsFunc(
				p.conns, func(nc *nats.Conn) bool { return nc.ConnectedServerName() == server },
			) {
				m.left = time.Since(begun)
			}
		}
		for _, h := range w.Hubs {
			if at := h.at(); there[h.ID] && at == server {
				m.sentAway = time.Since(begun)
			} else if there[h.ID] && at != "" {
				delete(there, h.ID)
				again[h] = time.Now()
			}
		}
	}
	w.Network.Heal()
	w.Trace.Add("FAULT", "healed")
	_ = sleep(ctx, w.Limits.Status)
	w.checkStatus()
	if off != nil {
		w.Network.Boot(off.host)
	}
	for _, h := range w.Hubs {
		reconnected, left := again[h]
		for _, v := range h.Values() {
			acked := v.acked
			if acked.IsZero() {
				acked = time.Now()
			}
			switch {
			case left && acked.After(reconnected):
				m.there = max(m.there, acked.Sub(reconnected))
				left = false
			case h == off, there[h.ID], !reconnected.IsZero():
			case v.emitted.After(begun) && v.emitted.Before(begun.Add(outage/2)):
				m.elsewhere = max(m.elsewhere, acked.Sub(v.emitted))
			}
		}
	}
	return m
}

// measureMove cuts a replica off from all servers, and returns when another one serves all hubs.
func (w *World) measureMove(ctx context.Context, cut int) time.Duration {
	w.Replicas[cut].ahead.Store(int64(clockAhead))
	_ = sleep(ctx, 5*time.Second) // in which its commits are later than those of the next holder
	key := w.load.createKey(ctx, 1-cut)
	for _, host := range brokerHosts {
		w.Network.Cut(replicaHosts[cut], host)
		w.Network.Cut(host, replicaHosts[cut])
	}
	w.Trace.Add("FAULT", "replica "+replicaHosts[cut]+" cut off")
	elsewhere := func(h *Hub) bool {
		other := w.Replicas[1-cut].parts.Load()
		return other == nil || !other.bridge.Serves(h.ID)
	}
	var revoked sync.WaitGroup
	revoked.Go(func() { w.load.revokeKey(ctx, 1-cut, key) })
	defer revoked.Wait()
	begun := time.Now()
	for time.Since(begun) < outage && slices.ContainsFunc(w.Hubs, elsewhere) {
		_ = sleep(ctx, sample)
	}
	took := time.Since(begun)
	w.Network.Heal()
	_ = sleep(ctx, leaveLimit)
	for _, h := range w.Hubs {
		if n := w.servers(h.ID); n != 1 {
			w.Failf("%s is served by %d replicas %v after the heal", h.ID, n, leaveLimit)
		}
	}
	return took
}
