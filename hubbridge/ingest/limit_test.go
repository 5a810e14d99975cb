package ingest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/directory"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestResetsAreLimited holds that a hub that is reset all the time is limited, also over a restart
// of the bridge, and loses nothing. Each reset is a fact of the directory, which is never
// deleted: one hub could cause 525 a second.
func TestResetsAreLimited(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	now := &clock{now: time.Now()}
	const burst = 3
	r.Directory = directory.NewService(r.Log, directory.ServiceConfig{
		Environment: domain.EnvironmentDev,
		Presence:    installationtest.Presence{},
		Connections: &installationtest.Connections{},
		Logs:        r.HubLogs,
		Now:         now.Now,
		HubLogs:     domain.HubLimit{PerMinute: 2, Burst: burst},
	})
	h := adopted(r)
	log := &streamstest.LogLines{}
	configure := func(cfg *ingest.Config) { cfg.Now, cfg.Logger = now.Now, log.Logger() }
	s := r.shard(h.id, configure)
	h.helloAcked("log-0", 1, 0, 0)
	for n := 1; n <= burst; n++ {
		now.advance(2 * time.Second)
		name := fmt.Sprint("log-", n)
		h.helloAcked(name, 1, 2, 0)
	}
	h.events(fmt.Sprint("log-", burst), 1, 2)
	h.wantAck(fmt.Sprint("log-", burst), 2)
	resets := func() int {
		state, _, err := r.Directory.Hub(t.Context(), h.id)
		streamstest.Must(t, err)
		return len(state.LogTimes)
	}
	for round := range 2 { // in the second round another process serves the shard
		for n := range 5 {
			before := r.count("hellos_total", "outcome", "limited")
			now.advance(time.Second)
			h.helloOnce(fmt.Sprintf("more-%d-%d", round, n), 1, 7)
			streamstest.Eventually(
				t, "the hello is limited",
				func() bool { return r.count("hellos_total", "outcome", "limited") > before },
			)
		}
		if got := resets(); got != burst {
			t.Errorf("%d resets are recorded, want %d", got, burst)
		}
		s.kill()
		s = r.shard(h.id, configure)
	}
	if logged := log.Of(t, "hub limited"); len(logged) != 2 || logged[0]["hub_id"] != string(h.id) {
		t.Errorf("logged %v, want one line of each process", logged)
	}
	h.wantEventLog("log_reset:factory_reset 1 2")
	// After a pause the hub continues with everything that it holds.
	now.advance(time.Minute)
	h.helloAcked("last", 1, 2, 0)
	h.eventsAcked("last", 1, 2)
	h.wantEventLog("log_reset:factory_reset 1 2")
	if got := resets(); got != burst+1 {
		t.Errorf("%d resets are recorded, want %d", got, burst+1)
	}
}

// TestHellosAreLimited holds that most hellos of a hub that repeats them all the time are ignored.
// Otherwise each would be written into the presence bucket.
func TestHellosAreLimited(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	now := &clock{now: time.Now()}
	r.shard(h.id, func(cfg *ingest.Config) {
		cfg.Now, cfg.Budget = now.Now, ingest.NewBudget(ingest.BudgetConfig{Now: now.Now})
	})
	const hellos = 200
	for range hellos {
		h.helloOnce("a", 1, 0)
	}
	streamstest.Eventually(t, "all hellos are handled", func() bool {
		return r.count("hellos_total", "outcome", "ok")+r.count("hellos_total", "outcome", "limited") == hellos
	})
	if ok := r.count("hellos_total", "outcome", "ok"); ok > 40 {
		t.Errorf("%v hellos were accepted, want at most 40", ok)
	}
	for _, ok := h.ackWithin(0); ok; _, ok = h.ackWithin(0) {
	}
	now.advance(10 * time.Second)
	h.helloOnce("a", 1, 0)
	h.wantAck("a", 0)
}

// release releases the hub from its organization. adopt adds it to one again.
func (h *hub) release() {
	h.r.t.Helper()
	if _, err := h.r.Directory.ReleaseHub(h.r.t.Context(), installationtest.Operator, h.id); err != nil {
		h.r.t.Fatal(err)
	}
}

// TestReleasedHub holds that the next organization of a released hub gets none of the former
// organization's events: neither those that are stored nor those that the hub still holds, also
// when the bridge was killed in between.
func TestReleasedHub(t *testing.T) {
	t.Parallel()
	nothing := func(*hub, **running) {}
	// resume is a hub that holds stored events, and later ones of the former organization.
	resume := func(h *hub) {
		h.helloAcked("a", 2, 9, 9)
		h.eventsAcked("a", 10, 11)
	}
	goOn := func(h *hub) { h.eventsAcked("a", 10, 11) }
	for name, c := range map[string]struct {
		// before runs after the release and before the next organization adds the hub, then runs
		// after that.
		before func(h *hub, s **running)
		then   func(h *hub)
		want   string
		// killed means that the bridge is killed before the release, so the checkpoint is behind.
		killed bool
	}{
		"silent until it is added again": {
			nothing, resume, "skip:6-9 10 11", true,
		},
		"disconnected by the broker": {
			func(h *hub, s **running) {
				(*s).Observe(h.id, ended(1, "kicked"))
				h.wantOnline(false)
			},
			resume, "skip:6-9 10 11", false,
		},
		"bridge killed between connection and hello": {
			func(h *hub, s **running) {
				(*s).Observe(h.id, ended(1, "kicked"))
				h.wantOnline(false)
				h.adopt()
				(*s).Observe(h.id, began(2))
				h.wantOnline(true)
				(*s).kill()
				*s = h.r.shard(h.id)
			},
			resume, "connected skip:6-9 10 11", true,
		},
		"hello in between": {
			func(h *hub, _ **running) { h.helloAcked("a", 2, 9, 9) },
			func(h *hub) {
				h.eventsAcked("a", 10, 11)
				h.helloAcked("a", 2, 11, 11)
			},
			"10 11", false,
		},
		"events in between": {
			func(h *hub, _ **running) {
				h.helloAcked("a", 2, 7, 7)
				h.eventsAcked("a", 8, 9)
			},
			goOn, "10 11", true,
		},
		"reset in between": {
			func(h *hub, _ **running) { h.helloAcked("b", 1, 4, 4) },
			func(h *hub) { h.eventsAcked("b", 5, 6) },
			"5 6", false,
		},
		"reset after it is added again": {
			nothing,
			func(h *hub) {
				h.helloAcked("b", 1, 4, 4)
				h.eventsAcked("b", 5, 6)
			},
			"5 6", true,
		},
		"events before the hello": {
			nothing,
			func(h *hub) {
				h.events("a", 6, 9)
				h.helloAcked("a", 6, 9, 9)
				h.eventsAcked("a", 10, 10)
			},
			"skip:6-9 10", false,
		},
		"bridge killed in between": {
			func(h *hub, s **running) {
				(*s).kill()
				*s = h.r.shard(h.id)
				h.helloAcked("a", 2, 9, 9)
				(*s).kill()
				*s = h.r.shard(h.id)
			},
			goOn, "10 11", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestIngest(t, time.Hour)
			h := adopted(r)
			s := r.shard(h.id)
			s.Observe(h.id, began(1))
			h.wantOnline(true)
			h.helloAcked("a", 1, 0, 0)
			h.eventsAcked("a", 1, 5)
			if c.killed { // the checkpoint is behind the five events
				s.kill()
				s = r.shard(h.id)
			}
			h.release()
			if _, err := r.HubLogs.Page(t.Context(), h.id, "", 10); domain.CodeOf(
				err,
			) != domain.CodeNotFound {
				t.Errorf("Page of a released hub: %v, want %s", err, domain.CodeNotFound)
			}
			c.before(h, &s)
			h.adopt()
			c.then(h)
			h.wantEventLog(c.want)
			s.kill()
			r.shard(h.id)
			h.hello("x", 1, 0) // a reset like any other from here on
			h.wantAck("x", 0)
			h.wantEventLog("log_reset:factory_reset")
		})
	}
}
