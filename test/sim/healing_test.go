package sim

import (
	"context"
	"math/rand"
	"slices"
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
	// sample is how often it looks.
	sample = 100 * time.Millisecond
	// leaveLimit is how long replicas and hubs may stay at an isolated server.
	leaveLimit = 3 * time.Second
)

// TestHealing measures how a cluster copes with a server that is isolated from the other two, though
// hubs and replicas still reach it, and with a replica that is cut off from all servers:
//
//	make sim SEEDS=20 SIM="-test.run=TestHealing"
//
// It prints the longest times: until replicas have left the server; until its hubs are sent away,
// and from their reconnect to the first ack; until the acks of values that the other hubs emitted
// meanwhile; and until the groups of the replica are served by the other one. It fails if replicas or
// hubs stay at the server, if a replica has a wrong status of a hub half a minute later, or if both
// replicas serve a group.
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
		for _, failure := range w.Failures() {
			t.Error(failure)
		}
	})
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
	for _, h := range w.Hubs {
		if h.at() == server {
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
			case there[h.ID] || !reconnected.IsZero():
			case v.emitted.After(begun) && v.emitted.Before(begun.Add(outage/2)):
				m.elsewhere = max(m.elsewhere, acked.Sub(v.emitted))
			}
		}
	}
	return m
}

// measureMove cuts a replica off from all servers, and returns when another one serves all hubs.
func (w *World) measureMove(ctx context.Context, cut int) time.Duration {
	for _, host := range brokerHosts {
		w.Network.Cut(replicaHosts[cut], host)
		w.Network.Cut(host, replicaHosts[cut])
	}
	w.Trace.Add("FAULT", "replica "+replicaHosts[cut]+" cut off")
	elsewhere := func(h *Hub) bool {
		other := w.Replicas[1-cut].parts.Load()
		return other == nil || !other.bridge.Serves(h.ID)
	}
	begun := time.Now()
	for time.Since(begun) < outage && slices.ContainsFunc(w.Hubs, elsewhere) {
		_ = sleep(ctx, sample)
	}
	took := time.Since(begun)
	for _, h := range w.Hubs {
		if n := w.servers(h.ID); n > 1 {
			w.Failf("%s is served by %d replicas", h.ID, n)
		}
	}
	w.Network.Heal()
	return took
}
