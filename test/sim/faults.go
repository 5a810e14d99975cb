package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand"
	"strings"
	"time"

	"hubcloud/domain"
)

const (
	// Each fault lasts for a time between these.
	leastFault, mostFault = 2 * time.Second, 40 * time.Second
	// electionLimit is how long after a heal the servers may take to elect a leader of each stream:
	// the service cannot hasten that. groupLimit is how long after a heal every group of shards must be served again.
	electionLimit, groupLimit = 40 * time.Second, 30 * time.Second
)

// fault is something that goes wrong until heal is called. The network heals by itself.
type fault struct {
	name string
	heal func()
}

// faults draws a fault from the seed. Each can be survived: a majority of the servers keeps its
// disks.
var faults = []func(*World, *rand.Rand) fault{
	isolateBroker, isolateBroker, cutOneWay, cutOneWay, cutReplica, crashBroker, leaveBehind,
	crashBrokers, crashReplica, crashReplica, endReplica, fillDisk, slowNetwork, resetAll,
	disconnectHubs, partition, partition, stopProcess, stopProcess, slowDisk, setClock,
	interruptRoutes, cutLink, cutLink,
}

// hosts returns the hosts of all servers and replicas.
func hosts() []string { return append(append([]string{}, brokerHosts...), replicaHosts...) }

func pick(random *rand.Rand, from []string) string { return from[random.Intn(len(from))] }

func nothing() {}

// isolateBroker cuts a server off from the other servers, and perhaps from replicas, both ways.
func isolateBroker(w *World, random *rand.Rand) fault {
	from := pick(random, brokerHosts)
	others := brokerHosts
	if random.Intn(2) == 0 {
		others = hosts()
	}
	for _, to := range others {
		w.Network.Cut(from, to)
		w.Network.Cut(to, from)
	}
	return fault{fmt.Sprintf("broker %s isolated from %d hosts", from, len(others)-1), nothing}
}

// cutOneWay loses what one host sends to some of the others.
func cutOneWay(w *World, random *rand.Rand) fault {
	from := pick(random, hosts())
	var cut []string
	for _, to := range hosts() {
		if to != from && random.Intn(3) > 0 {
			w.Network.Cut(from, to)
			cut = append(cut, to)
		}
	}
	return fault{fmt.Sprintf("cut from %s to %s", from, strings.Join(cut, ", ")), nothing}
}

// cutLink cuts two servers off from each other. Both reach the third one.
func cutLink(w *World, random *rand.Rand) fault {
	i := random.Intn(len(brokerHosts))
	a, b := brokerHosts[i], brokerHosts[(i+1)%len(brokerHosts)]
	w.Network.Cut(a, b)
	w.Network.Cut(b, a)
	return fault{fmt.Sprintf("link between %s and %s cut", a, b), nothing}
}

// cutReplica cuts a replica off from one server or all of them, both ways.
func cutReplica(w *World, random *rand.Rand) fault {
	from, most := pick(random, replicaHosts), 1+random.Intn(len(brokerHosts))
	for _, to := range brokerHosts[:most] {
		w.Network.Cut(from, to)
		w.Network.Cut(to, from)
	}
	return fault{fmt.Sprintf("replica %s cut off from %d servers", from, most), nothing}
}

// partition splits all hosts in two, and cuts what is between them.
func partition(w *World, random *rand.Rand) fault {
	var sides [2][]string
	for _, host := range hosts() {
		i := random.Intn(2)
		sides[i] = append(sides[i], host)
	}
	for _, a := range sides[0] {
		for _, b := range sides[1] {
			w.Network.Cut(a, b)
			w.Network.Cut(b, a)
		}
	}
	return fault{fmt.Sprintf("%v cut off from %v", sides[0], sides[1]), nothing}
}

// stopProcess stops a process until the heal, or goes on earlier, perhaps into another fault.
func stopProcess(w *World, random *rand.Rand) fault {
	host := pick(random, hosts())
	w.Network.Stop(host, true)
	goOn := func() { w.Network.Stop(host, false) }
	time.AfterFunc(leastFault+time.Duration(random.Int63n(int64(mostFault))), goOn)
	return fault{"process of " + host + " stopped", goOn}
}

// slowDisk lets each write of a server's streams take a time.
func slowDisk(w *World, random *rand.Rand) fault {
	host, by := pick(random, brokerHosts), time.Duration(10+random.Intn(500))*time.Millisecond
	w.Brokers.SlowDisk(host, by)
	return fault{
		fmt.Sprintf("disk of %s slower by %v", host, by),
		func() { w.Brokers.SlowDisk(host, 0) },
	}
}

// fillDisk fails each write of a server's streams. The server is started again when there is room,
// since it keeps the error.
func fillDisk(w *World, random *rand.Rand) fault {
	host := pick(random, brokerHosts)
	w.Brokers.FillDisk(host, true)
	return fault{"disk of " + host + " full", func() {
		w.Brokers.FillDisk(host, false)
		w.Brokers.Kill(host, false)
		w.Brokers.Start(host)
	}}
}

// PowerCuts makes half of the crashes of servers power cuts.
var PowerCuts bool

// crashKind draws whether servers crash or lose their power.
func crashKind(random *rand.Rand) (what string, powerCut bool) {
	if cut := random.Intn(2) == 0; !cut || !PowerCuts {
		return "crashed", false
	}
	return "without power", true
}

// crashBroker crashes a server.
func crashBroker(w *World, random *rand.Rand) fault {
	host := pick(random, brokerHosts)
	what, powerCut := crashKind(random)
	w.Brokers.Kill(host, powerCut)
	return fault{"broker " + host + " " + what, func() { w.Brokers.Start(host) }}
}

// crashBrokers crashes all servers at once.
func crashBrokers(w *World, random *rand.Rand) fault {
	what, powerCut := crashKind(random)
	for _, host := range brokerHosts {
		w.Network.Kill(host)
	}
	for _, host := range brokerHosts {
		w.Brokers.Kill(host, powerCut)
	}
	return fault{"all brokers " + what, func() {
		for _, host := range brokerHosts {
			w.Brokers.Start(host)
		}
	}}
}

// leaveBehind cuts a server off from the others for a while, and then crashes those: the one that has
// missed what they stored is the only one that answers.
func leaveBehind(w *World, random *rand.Rand) fault {
	behind := pick(random, brokerHosts)
	what, powerCut := crashKind(random)
	var others []string
	for _, other := range brokerHosts {
		if other != behind {
			others = append(others, other)
			w.Network.Cut(behind, other)
			w.Network.Cut(other, behind)
		}
	}
	time.Sleep(leastFault + time.Duration(random.Int63n(int64(mostFault/4)))) // virtual
	for _, other := range others {
		w.Network.Kill(other)
	}
	for _, other := range others {
		w.Brokers.Kill(other, powerCut)
	}
	return fault{"broker " + behind + " isolated, and then the others " + what, func() {
		for _, other := range others {
			w.Brokers.Start(other)
		}
	}}
}

// crashReplica crashes a replica.
func crashReplica(w *World, random *rand.Rand) fault {
	r := w.Replicas[random.Intn(len(w.Replicas))]
	r.Kill()
	return fault{"replica " + r.host + " crashed", r.Start}
}

// endReplica ends a replica in order.
func endReplica(w *World, random *rand.Rand) fault {
	r := w.Replicas[random.Intn(len(w.Replicas))]
	w.Network.Stop(r.host, false)
	r.Stop()
	return fault{"replica " + r.host + " ended", r.Start}
}

// slowNetwork delays what one host sends.
func slowNetwork(w *World, random *rand.Rand) fault {
	from, by := pick(random, hosts()), time.Duration(10+random.Intn(800))*time.Millisecond
	for _, to := range hosts() {
		w.Network.Slow(from, to, by)
	}
	return fault{fmt.Sprintf("%s slower by %v", from, by), nothing}
}

// setClock sets the clock of a replica ahead or back, by up to three hours.
func setClock(w *World, random *rand.Rand) fault {
	r := w.Replicas[random.Intn(len(w.Replicas))]
	by := time.Duration(random.Int63n(int64(6*time.Hour))) - 3*time.Hour
	r.ahead.Store(int64(by))
	return fault{
		fmt.Sprintf("clock of replica %s ahead by %v", r.host, by), func() { r.ahead.Store(0) },
	}
}

// resetAll resets every connection of a host.
func resetAll(w *World, random *rand.Rand) fault {
	host := pick(random, hosts())
	for _, other := range hosts() {
		w.Network.Reset(host, other)
	}
	return fault{"connections of " + host + " reset", nothing}
}

// interruptRoutes breaks a server's connections to the other servers for some seconds, in which its
// hubs connect again: what it reports of them reaches nobody else.
func interruptRoutes(w *World, random *rand.Rand) fault {
	host := pick(random, brokerHosts)
	w.interrupt(host, time.Duration(random.Int63n(int64(3*time.Second))))
	return fault{"routes of broker " + host + " interrupted", nothing}
}

// interrupt is interruptRoutes for a server and a time.
func (w *World) interrupt(host string, d time.Duration) {
	for _, other := range brokerHosts {
		w.Network.Cut(host, other)
		w.Network.Cut(other, host)
		w.Network.Reset(host, other)
	}
	for _, h := range w.Hubs {
		w.Network.Reset(h.host, host)
	}
	time.Sleep(d) // virtual
	for _, other := range brokerHosts {
		w.Network.Restore(host, other)
		w.Network.Restore(other, host)
	}
}

// disconnectHubs cuts some hubs off, without a word to the servers.
func disconnectHubs(w *World, random *rand.Rand) fault {
	cut := 0
	for _, h := range w.Hubs {
		if random.Intn(2) == 0 {
			cut++
			for _, to := range brokerHosts {
				w.Network.Cut(h.host, to)
				w.Network.Cut(to, h.host)
			}
		}
	}
	return fault{fmt.Sprintf("%d hubs cut off", cut), nothing}
}

// Episode makes one to three faults overlap, heals them, and checks that the cluster heals too.
func Episode(ctx context.Context, w *World, random *rand.Rand) {
	w.calm.Store(0)
	var made []fault
	busy := map[int]bool{}
	for range 1 + random.Intn(3) {
		next := random.Intn(len(faults))
		if len(made) > 0 && !combines(next, busy) {
			continue
		}
		busy[next] = true
		f := faults[next](w, random)
		w.Trace.Add("FAULT", f.name)
		made = append(made, f)
		_ = sleep(ctx, leastFault+time.Duration(random.Int63n(int64(mostFault-leastFault))))
	}
	for _, f := range made {
		f.heal()
	}
	w.Network.Heal()
	w.Trace.Add("FAULT", "healed")
	w.checkHealed(ctx)
}

// combines reports whether a fault may overlap with those that were made: what ends does so once.
func combines(next int, busy map[int]bool) bool {
	const firstCrash, lastCrash = 5, 11
	if next < firstCrash || next > lastCrash {
		return true
	}
	for other := range busy {
		if other >= firstCrash && other <= lastCrash {
			return false
		}
	}
	return true
}

// awaitElected waits after a heal until each stream has a leader, and reports whether that is so in
// time.
func (w *World) awaitElected(ctx context.Context) bool {
	healed, last := time.Now(), ""
	for elected := false; !elected; _ = sleep(ctx, time.Second/4) {
		leaderless, err := w.Brokers.Leaderless()
		last = cmp.Or(leaderless, last)
		if elected = leaderless == "" && err == nil; !elected && time.Since(healed) > electionLimit {
			w.Failf("no leader %v after a heal: %s %v", electionLimit, leaderless, err)
			return false
		}
	}
	w.SlowestElection = max(w.SlowestElection, time.Since(healed))
	w.Trace.Add("FAULT", "each stream has a leader; the last was "+last)
	return true
}

// checkHealed checks what is promised after a heal, now.
func (w *World) checkHealed(ctx context.Context) {
	healed := time.Now()
	if !w.awaitElected(ctx) {
		return
	}
	elected := time.Now()
	_ = sleep(ctx, w.Limits.Status)
	w.checkStatus()
	_ = sleep(ctx, w.Limits.Acks-time.Since(elected))
	w.calm.Store(time.Now().UnixNano())
	_ = sleep(ctx, groupLimit-time.Since(elected))
	w.load.checkReached(healed)
	for _, h := range w.Hubs {
		w.checkAcks(h, healed, elected)
		if w.servers(h.ID) == 0 {
			w.Failf("%s is served by no replica %v after a heal", h.ID, time.Since(healed))
		}
	}
}

// checkAcks checks that everything that a hub had emitted before a heal was acknowledged in time after
// the elections.
func (w *World) checkAcks(h *Hub, healed, elected time.Time) {
	for i, v := range h.Values() {
		if !v.emitted.Before(healed) {
			return
		}
		after := v.acked.Sub(elected)
		if v.acked.IsZero() {
			after = time.Since(elected)
		}
		w.SlowestAck = max(w.SlowestAck, after)
		if after > w.Limits.Acks {
			w.Failf(
				"%s: %d, of %v before a heal, is acknowledged %v after the elections or later: %+v",
				h.ID, i+1, healed.Sub(v.emitted), after, h.lib.Status(),
			)
			return
		}
	}
}

// checkStatus checks that every replica has the status of each hub that has not changed lately.
func (w *World) checkStatus() {
	for _, r := range w.Replicas {
		p := r.parts.Load()
		if p == nil {
			w.Failf("replica %s is not ready %v after a heal", r.host, w.Limits.Status)
			continue
		}
		for _, h := range w.Hubs {
			online := h.lib.Status().Connected
			if online != p.presence.Online(h.ID) && !online && w.Network.connects(h.host) {
				continue // its server knows of it, though the hub has no answer to its CONNECT yet
			}
			if time.Since(h.changed()) >= w.Limits.Status && p.presence.Online(h.ID) != online {
				w.Failf("%s: online is %t at %s, want %t", h.ID, !online, r.host, online)
			}
		}
	}
}

// servers returns how many replicas serve a hub.
func (w *World) servers(id domain.HubID) int {
	n := 0
	for _, r := range w.Replicas {
		if p := r.parts.Load(); p != nil && p.bridge.Serves(id) {
			n++
		}
	}
	return n
}

// checkHolders checks that at most one replica is certain to hold each group.
func (w *World) checkHolders() {
	for group := range groups {
		n := 0
		for _, r := range w.Replicas {
			if p := r.parts.Load(); p != nil && p.leases.holds(group) {
				n++
			}
		}
		if n > 1 {
			w.Failf("%d replicas are certain to hold group %d", n, group)
		}
	}
}
