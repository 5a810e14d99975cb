package live_test

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// One stream carries the events of all hubs, each hub's in order; a page that comes back gets what
// it has missed, and nothing twice.
func TestStreamGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, live.Config{})
	r.append(hubA, "channel.observed", 1, levels(1, 10)...)
	p := r.open(live.StreamRequest{})
	var told states
	p.await("hub.portal_states", &told)
	if !told.Whole || len(told.Hubs) != 2 || told.Hubs[0].Status != domain.HubOnline {
		t.Errorf("the states are %+v", told)
	}
	r.append(hubA, "channel.observed", 1, levels(11, 200)...)
	r.append(hubB, "channel.observed", 1, levels(1, 50)...)
	got := p.values(map[domain.HubID]int{hubA: 200, hubB: 50})
	if !slices.Equal(got[hubA], upTo(11, 200)) || !slices.Equal(got[hubB], upTo(1, 50)) {
		t.Errorf("got %v", got)
	}
	p.cancel()
	r.append(hubA, "channel.observed", 1, levels(201, 210)...)
	r.append(hubB, "channel.observed", 1, levels(51, 60)...)
	again := r.open(live.StreamRequest{Positions: p.positions})
	got = again.values(map[domain.HubID]int{hubA: 210, hubB: 60})
	if !slices.Equal(got[hubA], upTo(201, 210)) || !slices.Equal(got[hubB], upTo(51, 60)) {
		t.Errorf("after coming back: %v", got)
	}
}

// A page of one hub hears nothing of the others, and a page that asks for what was shortly before
// gets it.
func TestStreamOfOneHub(t *testing.T) {
	t.Parallel()
	r := newRig(t, live.Config{})
	r.append(hubA, "channel.observed", 1, levels(1, 5)...)
	r.append(hubB, "channel.observed", 1, levels(1, 5)...)
	p := r.open(live.StreamRequest{Hub: hubA, Recent: 60})
	got := p.values(map[domain.HubID]int{hubA: 5})
	if !slices.Equal(got[hubA], upTo(1, 5)) || len(got[hubB]) > 0 {
		t.Errorf("got %v", got)
	}
	if _, ok := p.positions[hubB]; ok || len(p.positions) != 1 {
		t.Errorf("it stands at %v", p.positions)
	}
}

// A page that was opened got all that had happened in ten minutes: of a busy hub, tens of thousands
// of events, of which it shows 500.
func TestStreamBeginsWithFewEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, live.Config{})
	r.append(hubA, "channel.observed", 1, levels(1, 400)...)
	r.append(hubB, "channel.observed", 1, levels(1, 90)...)
	p := r.open(live.StreamRequest{Recent: 600})
	var told states
	p.await("hub.portal_states", &told)
	r.append(hubA, "channel.observed", 1, levels(401, 402)...)
	got := p.values(map[domain.HubID]int{hubA: 402, hubB: 90})
	if !slices.Equal(got[hubA], upTo(401, 402)) || !slices.Equal(got[hubB], upTo(1, 90)) {
		t.Errorf("got %v", got)
	}
}

// Positions that are none, or from before a reset, begin at the log's end, and the page is told
// that there is a gap.
func TestStreamTellsGaps(t *testing.T) {
	t.Parallel()
	r := newRig(t, live.Config{})
	r.append(hubA, "channel.observed", 1, levels(1, 5)...)
	first := r.open(live.StreamRequest{Recent: 60})
	first.values(map[domain.HubID]int{hubA: 5})
	r.mu.Lock()
	r.epochs[hubA] = domain.Epoch{ID: domain.NewEpochID(0xff), After: r.last[hubA]}
	r.mu.Unlock()
	var gap struct {
		HubID domain.HubID `json:"hub_id"`
	}
	first.await("hub.portal_gap", &gap)
	if gap.HubID != hubA {
		t.Errorf("a gap of %s", gap.HubID)
	}
	r.append(hubA, "channel.observed", 1, levels(6, 6)...)
	if got := first.values(map[domain.HubID]int{hubA: 6}); len(got[hubA]) != 1 {
		t.Errorf("after the reset: %v", got)
	}
	for _, position := range []string{"x", first.positions[hubB]} {
		p := r.open(live.StreamRequest{Positions: map[domain.HubID]string{hubA: position}})
		p.await("hub.portal_gap", &gap)
	}
}

// States are right in the end whatever the events said: a change that comes without an event is
// told, a hub that is added is followed.
func TestStreamLooksAtStates(t *testing.T) {
	t.Parallel()
	const hubC = domain.HubID("hub-cccc-cccc-cccc")
	r := newRig(t, live.Config{StateInterval: 20 * time.Millisecond})
	p := r.open(live.StreamRequest{})
	var told states
	p.await("hub.portal_states", &told)
	reason := "read error"
	r.change(hubB, func(h *domain.Hub) {
		h.Status, h.DisconnectReason, h.Since = domain.HubOffline, &reason, day.Add(time.Minute)
	})
	p.await("hub.portal_states", &told)
	if told.Whole || len(told.Hubs) != 1 || told.Hubs[0].ID != hubB ||
		told.Hubs[0].Status != domain.HubOffline ||
		told.Hubs[0].Reason != "connection failed: check its power and network (read error)" {
		t.Errorf("told %+v", told)
	}
	r.add(hubC)
	p.await("hub.portal_states", &told)
	if told.Hubs[0].ID != hubC {
		t.Errorf("told %+v", told)
	}
	r.append(hubC, "channel.observed", 1, levels(1, 3)...)
	if got := p.values(map[domain.HubID]int{hubC: 3}); !slices.Equal(got[hubC], upTo(1, 3)) {
		t.Errorf("got %v", got)
	}
}

// TestStreamOfReleasedHubs: a page of all hubs went on showing one that had been taken from the
// organization; its stream ended, and while the read models were behind, the page heard that its
// viewer is no member any more.
func TestStreamOfReleasedHubs(t *testing.T) {
	t.Parallel()
	const hubC = domain.HubID("hub-cccc-cccc-cccc")
	r := newRig(t, live.Config{StateInterval: time.Hour})
	p := r.open(live.StreamRequest{})
	var told states
	p.await("hub.portal_states", &told)
	r.release(hubB)
	// the same stream, then one that begins; the read models have the hub all the time
	for range 2 {
		p.await("hub.portal_states", &told)
		if !told.Whole || len(told.Hubs) != 1 || told.Hubs[0].ID != hubA {
			t.Errorf("told %+v, want all hubs without %s", told, hubB)
		}
		r.append(hubA, "channel.observed", 1, levels(int(r.last[hubA])+1, int(r.last[hubA])+1)...)
		if got := p.values(map[domain.HubID]int{hubA: int(r.last[hubA])}); len(got[hubB]) > 0 {
			t.Errorf("events of the other: %v", got)
		}
		p = r.open(live.StreamRequest{Positions: p.positions})
	}
	// A hub that the read models had before this process knew of it is followed, and told of, soon.
	r.add(hubC)
	epoch, _ := r.epoch(hubC)
	r.mu.Lock()
	delete(r.epochs, hubC)
	r.mu.Unlock()
	p = r.open(live.StreamRequest{})
	p.await("hub.portal_states", &told)
	if len(told.Hubs) != 1 {
		t.Errorf("told %+v", told)
	}
	r.mu.Lock()
	r.epochs[hubC] = epoch
	r.mu.Unlock()
	p.await("hub.portal_states", &told)
	if told.Whole || len(told.Hubs) != 1 || told.Hubs[0].ID != hubC {
		t.Errorf("told %+v, want %s", told, hubC)
	}
}

// A connection's event has the states looked at shortly after, not at the next round.
func TestStreamLooksAfterConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t, live.Config{StateInterval: time.Hour})
	p := r.open(live.StreamRequest{})
	var told states
	p.await("hub.portal_states", &told)
	r.change(hubA, func(h *domain.Hub) { h.Status = domain.HubOffline })
	r.append(hubA, "hub.disconnected", 0, `{"reason":null}`)
	p.await("hub.portal_states", &told)
	if len(told.Hubs) != 1 || told.Hubs[0].Status != domain.HubOffline ||
		told.Hubs[0].Reason != "reason unknown" {
		t.Errorf("told %+v", told)
	}
}

// A stream ends at once with the membership and with the session, with the next keepalive at the
// latest, and with its lifetime; one member has a bounded number.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg live.Config
		end func(*rig)
	}{
		"membership": {live.Config{}, func(r *rig) { close(r.ended) }},
		"sign-out":   {live.Config{}, func(r *rig) { close(r.signedOut) }},
		"session": {live.Config{StreamKeepalive: 10 * time.Millisecond}, func(r *rig) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.out = true
		}},
		"lifetime": {live.Config{StreamLifetime: 100 * time.Millisecond}, func(*rig) {}},
		"logs":     {live.Config{}, func(r *rig) { r.logs.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.cfg)
			p := r.open(live.StreamRequest{})
			var told states
			p.await("hub.portal_states", &told)
			c.end(r)
			for {
				if _, ok := p.next(); !ok {
					return
				}
			}
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, live.Config{StreamsPerMember: 2})
	var told states
	first := r.open(live.StreamRequest{})
	first.await("hub.portal_states", &told)
	r.open(live.StreamRequest{}).await("hub.portal_states", &told)
	if r.open(live.StreamRequest{}).positions != nil {
		t.Error("a third stream is open")
	}
	first.cancel()
	deadline := time.Now().Add(time.Minute)
	for r.open(live.StreamRequest{}).positions == nil {
		if time.Now().After(deadline) {
			t.Fatal("a place that was given up is never free")
		}
	}
}
