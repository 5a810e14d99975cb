package portal

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestStreamResumes checks that a stream has the events of all hubs, in order per hub, and that a
// page that reconnects gets the events that it missed, each once.
func TestStreamResumes(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	r.append(hubA, "channel.observed", 1, levels(1, 10)...)
	p := r.open(streamRequest{})
	sent := p.states()
	if !sent.Whole || len(sent.Hubs) != 2 || sent.Hubs[0].Status != domain.HubOnline {
		t.Errorf("got states %+v, want two hubs, the first online", sent)
	}
	r.append(hubA, "channel.observed", 1, levels(11, 200)...)
	r.append(hubB, "channel.observed", 1, levels(1, 50)...)
	got := p.values(map[domain.HubID]int{hubA: 200, hubB: 50})
	if !slices.Equal(got[hubA], sequence(11, 200)) || !slices.Equal(got[hubB], sequence(1, 50)) {
		t.Errorf("got %v, want 11 to 200 of %s and 1 to 50 of %s", got, hubA, hubB)
	}
	p.cancel()
	r.append(hubA, "channel.observed", 1, levels(201, 210)...)
	r.append(hubB, "channel.observed", 1, levels(51, 60)...)
	again := r.open(streamRequest{Position: p.position})
	got = again.values(map[domain.HubID]int{hubA: 210, hubB: 60})
	if !slices.Equal(got[hubA], sequence(201, 210)) || !slices.Equal(got[hubB], sequence(51, 60)) {
		t.Errorf(
			"after reconnecting: got %v, want 201 to 210 of %s and 51 to 60 of %s", got, hubA, hubB,
		)
	}
}

// TestStreamOfASite checks that a stream of a site has the events and states of the hubs that are
// there at the time.
func TestStreamOfASite(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{StateInterval: time.Hour})
	move := func(hub domain.HubID, site string) {
		r.change(hub, func(h *domain.Hub) { h.SiteID = site })
	}
	move(hubB, "other")
	p := r.open(streamRequest{Site: "site"})
	sent := p.states()
	if !sent.Whole || len(sent.Hubs) != 1 || sent.Hubs[0].ID != hubA {
		t.Errorf("got states %+v, want only %s", sent, hubA)
	}
	r.append(hubB, "channel.observed", 1, levels(1, 3)...)
	r.append(hubA, "channel.observed", 1, levels(1, 1)...)
	if got := p.values(map[domain.HubID]int{hubA: 1}); len(got[hubB]) > 0 {
		t.Errorf("got events of a hub at another site: %v, want none", got)
	}
	move(hubB, "site")
	move(hubA, "other")
	sent = p.states()
	if !sent.Whole || len(sent.Hubs) != 1 || sent.Hubs[0].ID != hubB {
		t.Errorf("after both hubs moved: got states %+v, want only %s", sent, hubB)
	}
	r.append(hubA, "channel.observed", 1, levels(2, 2)...)
	r.append(hubB, "channel.observed", 1, levels(4, 4)...)
	got := p.values(map[domain.HubID]int{hubB: 4})
	if len(got[hubA]) > 0 || !slices.Equal(got[hubB], []int{4}) {
		t.Errorf("after both hubs moved: got %v, want 4 of %s", got, hubB)
	}
}

// The position of a stream moves on with the events of other hubs, so that a page that reconnects
// does not read them again, and is renewed while nothing happens, so that it does not expire.
func TestStreamRenewsItsPosition(t *testing.T) {
	t.Parallel()
	const retention = time.Hour
	r := newTestLive(t, Config{Retention: retention, StreamKeepalive: 20 * time.Millisecond})
	p := r.open(streamRequest{Hub: hubB})
	p.await("hub.portal_now", &struct{}{})
	before := p.position
	r.append(hubA, "channel.observed", 1, levels(1, 3)...)
	p.awaitPosition(before)
	for range 3 {
		r.clock.Advance(retention * 6 / 10)
		p.awaitPosition(p.position)
	}
	p.cancel()
	again := r.open(streamRequest{Position: p.position})
	var begun begin
	if again.await("hub.portal_begin", &begun); begun.Anew {
		t.Error("the renewed position has expired, want it valid")
	}
}

// A new page got all events of ten minutes, tens of thousands for a busy organization.
func TestStreamBeginsWithFewEvents(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	for first := 1; first < 1200; first += 200 {
		r.append(hubA, "channel.observed", 1, levels(first, first+199)...)
	}
	r.append(hubB, "channel.observed", 1, levels(1, 90)...)
	for name, c := range map[string]struct {
		request streamRequest
		want    int
	}{
		"all hubs":  {streamRequest{Recent: 600}, 0},
		"busy hub":  {streamRequest{Recent: 600, Hub: hubA}, 0},
		"quiet hub": {streamRequest{Recent: 600, Hub: hubB}, 90},
		"no recent": {streamRequest{Hub: hubB}, 0},
	} {
		p := r.open(c.request)
		var event logEvent
		for n := range c.want {
			p.await("channel.observed", &event)
			if event.HubID != hubB {
				t.Fatalf("%s: event %d is of %s, want %s", name, n, event.HubID, hubB)
			}
		}
		if b, ok := p.nextAfterStates(); !ok || b.Type != "hub.portal_now" {
			t.Errorf("%s: after %d events got %s %s, want no more", name, c.want, b.Type, b.Data)
		}
	}
}

// TestStreamReportsGaps checks that a stream reports the events that a page missed because a hub
// was reset, and begins anew, and says so, for positions that have expired or are invalid.
func TestStreamReportsGaps(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{Retention: time.Hour})
	p := r.open(streamRequest{})
	var begun begin
	if p.await("hub.portal_begin", &begun); begun.Anew {
		t.Error("a stream without a position begins anew, want it to begin")
	}
	p.cancel()
	r.append(hubA, "channel.observed", 1, levels(1, 5)...)
	r.reset(hubA)
	r.append(hubA, "channel.observed", 1, levels(6, 6)...)
	p = r.open(streamRequest{Position: p.position})
	if p.await("hub.portal_begin", &begun); begun.Anew {
		t.Error("after a reset of one hub the stream begins anew, want it to continue")
	}
	var gap struct {
		HubID domain.HubID `json:"hub_id"`
		Data  struct{ Reason string }
	}
	p.await("feed.gap", &gap)
	if gap.HubID != hubA || gap.Data.Reason != "log_reset" {
		t.Errorf("got the gap %+v, want log_reset of %s", gap, hubA)
	}
	if got := p.values(map[domain.HubID]int{hubA: 6}); len(got[hubA]) != 1 {
		t.Errorf("after the reset: got %v, want one event", got)
	}
	expired := p.position
	for _, position := range []string{"x", p.position[1:], p.position + "A"} {
		p = r.open(streamRequest{Position: position})
		if p.await("hub.portal_begin", &begun); !begun.Anew {
			t.Errorf("position %q: the stream continues, want it to begin anew", position)
		}
		p.await("hub.portal_now", &struct{}{})
	}
	value := int(r.last[hubA]) + 1
	r.append(hubA, "channel.observed", 1, levels(value, value)...)
	if got := p.values(map[domain.HubID]int{hubA: value}); len(got[hubA]) != 1 {
		t.Errorf("after an invalid position: got %v, want one event", got)
	}
	r.clock.Advance(2 * time.Hour)
	p = r.open(streamRequest{Position: expired})
	if p.await("hub.portal_begin", &begun); !begun.Anew {
		t.Error("the stream continues from an expired position, want it to begin anew")
	}
}

// TestStreamRefreshesStates checks that a stream sends state changes without an event, and has the
// events of hubs that are added.
func TestStreamRefreshesStates(t *testing.T) {
	t.Parallel()
	const hubC = domain.HubID("hub-cccc-cccc-cccc")
	r := newTestLive(t, Config{StateInterval: 20 * time.Millisecond})
	p := r.open(streamRequest{})
	sent := p.states()
	reason := "read error"
	r.change(hubB, func(h *domain.Hub) {
		h.Status, h.DisconnectReason, h.Since = domain.HubOffline, &reason, day.Add(time.Minute)
	})
	sent = p.states()
	if sent.Whole || len(sent.Hubs) != 1 || sent.Hubs[0].ID != hubB ||
		sent.Hubs[0].Status != domain.HubOffline ||
		sent.Hubs[0].Reason != "connection failed: check its power and network (read error)" {
		t.Errorf("got states %+v, want %s offline with its reason", sent, hubB)
	}
	r.add(hubC)
	sent = p.states()
	if sent.Hubs[0].ID != hubC {
		t.Errorf("got states %+v, want %s", sent, hubC)
	}
	r.append(hubC, "channel.observed", 1, levels(1, 3)...)
	if got := p.values(map[domain.HubID]int{hubC: 3}); !slices.Equal(got[hubC], sequence(1, 3)) {
		t.Errorf("got %v, want 1 to 3", got)
	}
}

// A page kept showing a hub after its release. While the read models were behind, its stream ended,
// and the page said that the viewer was no longer a member.
func TestStreamOfReleasedHubs(t *testing.T) {
	t.Parallel()
	const hubC = domain.HubID("hub-cccc-cccc-cccc")
	r := newTestLive(t, Config{StateInterval: time.Hour})
	p := r.open(streamRequest{})
	sent := p.states()
	r.release(hubB)
	// First the open stream, then a new one. The read models still have the hub.
	for range 2 {
		sent = p.states()
		if !sent.Whole || len(sent.Hubs) != 1 || sent.Hubs[0].ID != hubA {
			t.Errorf("got states %+v, want all hubs except %s", sent, hubB)
		}
		r.append(hubA, "channel.observed", 1, levels(int(r.last[hubA])+1, int(r.last[hubA])+1)...)
		if got := p.values(map[domain.HubID]int{hubA: int(r.last[hubA])}); len(got[hubB]) > 0 {
			t.Errorf("got events of the released hub: %v, want none", got)
		}
		p = r.open(streamRequest{Position: p.position})
	}
	// The read models may have a new hub before this process knows its owner.
	r.add(hubC)
	epoch, _ := r.epoch(hubC)
	r.mu.Lock()
	delete(r.epochs, hubC)
	r.mu.Unlock()
	p = r.open(streamRequest{})
	sent = p.states()
	if len(sent.Hubs) != 1 {
		t.Errorf("got states %+v, want one hub", sent)
	}
	r.mu.Lock()
	r.setEpoch(hubC, epoch)
	r.mu.Unlock()
	sent = p.states()
	if sent.Whole || len(sent.Hubs) != 1 || sent.Hubs[0].ID != hubC {
		t.Errorf("got states %+v, want %s", sent, hubC)
	}
}

// TestStreamRefreshesAfterDisconnection checks that a disconnection refreshes the states before the
// next StateInterval.
func TestStreamRefreshesAfterDisconnection(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{StateInterval: time.Hour})
	p := r.open(streamRequest{})
	sent := p.states()
	r.change(hubA, func(h *domain.Hub) { h.Status = domain.HubOffline })
	r.append(hubA, "hub.disconnected", 0, `{"reason":null}`)
	sent = p.states()
	if len(sent.Hubs) != 1 || sent.Hubs[0].Status != domain.HubOffline ||
		sent.Hubs[0].Reason != "reason unknown" {
		t.Errorf("got states %+v, want %s offline", sent, hubA)
	}
}

// TestStreamEnds checks that a stream ends with the membership, the session, its lifetime, the
// service and its only hub. If the end of the session is not signaled, the next keepalive ends the
// stream.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg Config
		end func(*testLive)
	}{
		"membership": {Config{}, func(r *testLive) { close(r.ended) }},
		"sign-out":   {Config{}, func(r *testLive) { close(r.signedOut) }},
		"session": {Config{StreamKeepalive: 10 * time.Millisecond}, func(r *testLive) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.out = true
		}},
		"lifetime": {Config{StreamLifetime: 100 * time.Millisecond}, func(*testLive) {}},
		"feed":     {Config{}, func(r *testLive) { r.feed.Close() }},
		"release":  {Config{}, func(r *testLive) { r.release(hubA) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestLive(t, c.cfg)
			p := r.open(streamRequest{Hub: hubA})
			p.states()
			c.end(r)
			for {
				if _, ok := p.next(); !ok {
					return
				}
			}
		})
	}
}

// TestStreamsPerMember checks the limit, and that a stream that ends makes space for another.
func TestStreamsPerMember(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{StreamsPerMember: 2})
	first := r.open(streamRequest{})
	first.states()
	r.open(streamRequest{}).states()
	if !r.open(streamRequest{}).rejected {
		t.Error("the third stream was accepted, want a rejection")
	}
	first.cancel()
	streamstest.Eventually(t, "a stream is accepted", func() bool {
		return !r.open(streamRequest{}).rejected
	})
}
