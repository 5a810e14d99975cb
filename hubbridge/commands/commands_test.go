package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/idempotency"
)

// TestAccepted: what a caller gets, and what the hub's log has of it.
func TestAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.replica("r1")
	for _, key := range []string{"k", ""} {
		channel, err := p.send(r.command(key))
		r.wantAccepted(channel, err)
		if channel.Key != "lock" || channel.Unit != nil || string(channel.Value) != "true" ||
			*channel.ObservedAt != "2026-01-02T03:04:05.000000Z" ||
			!channel.Available {
			t.Errorf("%+v", channel)
		}
	}
	r.hub.wantRan(2, 2)
	r.wantTold("requested accepted requested accepted")
	records := r.records()
	for i, one := range records {
		if one.CommandID != r.hub.ran[i/2] || one.OrgID != orgA || one.HubID != string(r.hub.id) || one.DeviceID != 3 || one.Key != "lock" || one.Endpoint != 0 ||
			string(one.Value) != "false" || one.Actor != origin().Actor || one.RequestID != "R1" ||
			time.Since(one.Time) > time.Minute ||
			one.Message != "" {
			t.Errorf("record %d: %+v", i, one)
		}
	}
	if got := p.count("total"); got != 2 {
		t.Errorf("%v counted", got)
	}
}

// TestFirstResponse: a repeat is answered as the first time, whatever has become of the hub, at any
// replica and after a restart.
func TestFirstResponse(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(hubCommand) (string, bool){
		"accepted":            func(c hubCommand) (string, bool) { return accepts(c, 1), true },
		"no such device":      func(hubCommand) (string, bool) { return refuses("not_found"), true },
		"not such a value":    func(hubCommand) (string, bool) { return refuses("invalid_request"), true },
		"it will not":         func(hubCommand) (string, bool) { return refuses("command_refused"), true },
		"without value, unit": func(hubCommand) (string, bool) { return bare, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.hub.act = act
			p := r.replica("r1")
			first := p.sent(r.command("k"))
			r.hub.set(func(h *hub) { h.offline, h.act = true, nil })
			p.kill()
			for _, p := range []*replica{r.replica("r1"), r.replica("r2")} {
				for range 3 {
					if again := p.sent(r.command("k")); again != first {
						t.Errorf("%+v, first %+v", again, first)
					}
				}
				if got := p.count("repeated_total"); got != 3 {
					t.Errorf("%v repeats counted", got)
				}
			}
			r.hub.wantRan(1, 1)
			if got := strings.Fields(r.told()); len(got) > 2 {
				t.Errorf("the log holds %s", got)
			}
		})
	}
}

const bare = `"result":{"channel":{"key":"lock","endpoint":0,"kind":"lock","available":false,"status":"pending"}}`

// TestNotRemembered: what settles nothing is tried again under the same id, and then what the hub
// did is the answer.
func TestNotRemembered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		ran    bool
		code   domain.Code
	}{
		"the hub cannot act now": {
			refuses("hub_unavailable"), false, domain.CodeHubUnavailable,
		},
		"the hub failed":             {refuses("on_fire"), false, domain.CodeHubError},
		"a 4xx that is not of a hub": {refuses("forbidden"), false, domain.CodeHubError},
		"nonsense":                   {`"result":{"channel":"yes"}`, false, domain.CodeHubError},
		"another channel": {
			strings.Replace(bare, `"key":"lock"`, `"key":"switch"`, 1), false, domain.CodeHubError,
		},
		"another endpoint": {
			strings.Replace(bare, `"endpoint":0`, `"endpoint":1`, 1), false, domain.CodeHubError,
		},
		"a channel that is no pending": {
			strings.Replace(bare, `pending`, `synchronized`, 1), false, domain.CodeHubError,
		},
		"no answer": {"", false, domain.CodeHubTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.replica("r1", hubTimeout(200*time.Millisecond))
			r.hub.answersAll(tc.answer, tc.ran)
			for range 2 {
				_, err := p.send(r.command("k"))
				wantCode(t, err, tc.code)
			}
			r.hub.set(func(h *hub) { h.act = nil })
			channel, err := r.replica("r2").send(r.command("k"))
			r.wantAccepted(channel, err)
			r.hub.wantRan(3, 1)
			if ids := r.hub.ids(); len(ids) != 1 {
				t.Errorf("under the ids %v", ids)
			}
			r.wantTold(
				strings.ReplaceAll(
					"requested X requested X requested accepted", "X", string(tc.code),
				),
			)
		})
	}
}

// TestLateAnswer: the hub acted and its answer came too late. The same key then gives what it did,
// and it is not asked to do it again.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.replica("r1", hubTimeout(200*time.Millisecond))
	late := make(chan struct{})
	r.hub.set(func(h *hub) { h.before = func(hubCommand) { <-late } })
	_, err := p.send(r.command("k"))
	wantCode(t, err, domain.CodeHubTimeout)
	close(late)
	channel, err := p.send(r.command("k"))
	r.wantAccepted(channel, err)
	if *channel.DesiredAt != "2026-01-02T03:04:06.000001Z" {
		t.Errorf("not the first run: %s", *channel.DesiredAt)
	}
	r.hub.wantRan(2, 1)
	r.hub.set(func(h *hub) { h.offline = true })
	again, err := p.send(r.command("k"))
	r.wantAccepted(again, err)
}

// TestOffline: a hub that is not connected is refused at once; nothing is kept of it, so that the
// key is free for any command.
func TestOffline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.replica("r1")
	r.hub.set(func(h *hub) { h.offline = true })
	for _, key := range []string{"k", ""} {
		began := time.Now()
		_, err := p.send(r.command(key))
		wantCode(t, err, domain.CodeHubOffline)
		if took := time.Since(began); took > 8*time.Second { // the hub has ten
			t.Errorf("it took %v", took)
		}
	}
	if n := r.reserved(); n != 0 || r.told() != "" {
		t.Errorf("%d keys reserved; the log holds %s", n, r.told())
	}
	r.hub.set(func(h *hub) { h.offline = false })
	other := r.command("k")
	other.Value = json.RawMessage(`true`)
	if channel, err := p.send(other); err != nil || string(channel.Desired) != "true" {
		t.Errorf("%+v, %v", channel, err)
	}
	_, err := p.send(r.command("k"))
	wantCode(t, err, domain.CodeIdempotencyConflict)
	r.hub.wantRan(1, 1)
}

// TestOfflineAfterATry: a try that settled nothing leaves the key to its command, and the hub's
// absence is told before anything else.
func TestOfflineAfterATry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.replica("r1")
	r.hub.answersAll(refuses("hub_unavailable"), false)
	_, err := p.send(r.command("k"))
	wantCode(t, err, domain.CodeHubUnavailable)
	r.hub.set(func(h *hub) { h.offline, h.act = true, nil })
	_, err = p.send(r.command("k"))
	wantCode(t, err, domain.CodeHubOffline)
	r.hub.set(func(h *hub) { h.offline = false })
	channel, err := p.send(r.command("k"))
	r.wantAccepted(channel, err)
	if ids := r.hub.ids(); len(ids) != 1 {
		t.Errorf("under the ids %v", ids)
	}
}

// TestConflict: a key stands for one command of one organization, whatever has become of it.
func TestConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, q := r.replica("r1"), r.replica("r2")
	r.wantAccepted(p.send(r.command("k")))
	for name, change := range map[string]func(*domain.Command){
		"value":    func(c *domain.Command) { c.Value = json.RawMessage(`true`) },
		"key":      func(c *domain.Command) { c.Key = "switch" },
		"endpoint": func(c *domain.Command) { c.Endpoint = 1 },
		"device":   func(c *domain.Command) { c.DeviceID = 4 },
		"hub":      func(c *domain.Command) { c.HubID = "hub-dddd-dddd-dddd" },
	} {
		for _, p := range []*replica{p, q} {
			other := r.command("k")
			change(&other)
			_, err := p.send(other)
			if wantCode(t, err, domain.CodeIdempotencyConflict); t.Failed() {
				t.Fatalf("another %s", name)
			}
		}
	}
	r.hub.wantRan(1, 1)
	other := r.command("k")
	other.OrgID, other.Value = orgB, json.RawMessage(`true`)
	if _, err := p.send(other); err != nil {
		t.Errorf("the same key of another organization: %v", err)
	}
	r.hub.wantRan(2, 2)

	// Also of one that the hub refused, or did not answer yet.
	r.hub.answersAll(refuses("command_refused"), true)
	_, err := p.send(r.command("refused"))
	wantCode(t, err, domain.CodeCommandRefused)
	release := make(chan struct{})
	r.hub.set(func(h *hub) { h.act, h.before = nil, func(hubCommand) { <-release } })
	answered := make(chan outcome, 1)
	go func() { answered <- p.sent(r.command("under way")) }()
	eventually(t, "it is asked", func() bool { return len(r.hub.ids()) == 4 })
	for _, key := range []string{"refused", "under way"} {
		for _, p := range []*replica{p, q} {
			other := r.command(key)
			other.Value = json.RawMessage(`true`)
			_, err := p.send(other)
			wantCode(t, err, domain.CodeIdempotencyConflict)
		}
	}
	close(release)
	if first := <-answered; first.err != "" {
		t.Error(first.err)
	}
}

// TestAnyKey: every text is a key of its own.
func TestAnyKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.replica("r1")
	keys := []string{
		"a", "A", " a", "a.b", "a.*", ">", "$KV.idempotency.>", "é", "e\u0301", "\xff", "\xfe",
		strings.Repeat("ü", 255), strings.Repeat("ü", 254) + "u",
		strings.Repeat("🔑", 255), strings.Repeat("\n", 255),
	}
	for range 2 {
		for _, key := range keys {
			channel, err := p.send(r.command(key))
			r.wantAccepted(channel, err)
		}
		r.hub.wantRan(len(keys), len(keys))
	}
	if n := r.reserved(); n != len(keys) {
		t.Errorf("%d keys reserved", n)
	}
}

// TestWindow: a key stands for its command as long as the window, counted from when it was
// reserved, however often it is sent, and then for the next one.
func TestWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	clock := func(_ *commands.Config, cfg *idempotency.Config) {
		cfg.Window, cfg.Now = time.Hour, func() time.Time { r.hub.mu.Lock(); defer r.hub.mu.Unlock(); return now }
	}
	later := func(d time.Duration) { r.hub.set(func(*hub) { now = now.Add(d) }) }
	p := r.replica("r1", clock)
	r.hub.answersAll(refuses("hub_unavailable"), false)
	_, err := p.send(r.command("k"))
	wantCode(t, err, domain.CodeHubUnavailable)
	later(30 * time.Minute)
	r.hub.set(func(h *hub) { h.act = nil })
	r.wantAccepted(p.send(r.command("k")))
	later(30*time.Minute - time.Microsecond)
	r.wantAccepted(p.send(r.command("k")))
	r.hub.wantRan(2, 1)
	later(time.Microsecond)
	other := r.command("k")
	other.Value = json.RawMessage(`true`)
	if channel, err := p.send(other); err != nil || string(channel.Desired) != "true" {
		t.Errorf("%+v, %v", channel, err)
	}
	r.hub.wantRan(3, 2)
	if ids := r.hub.ids(); len(ids) != 2 {
		t.Errorf("under the ids %v", ids)
	}
}

// TestKeysRunOut: the broker forgets keys when their time is over.
func TestKeysRunOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const window = 500 * time.Millisecond
	if err := r.buckets.SetIdempotencyWindow(t.Context(), r.conns, window); err != nil {
		t.Fatal(err)
	}
	p := r.replica("r1", func(_ *commands.Config, cfg *idempotency.Config) { cfg.Window = window })
	r.wantAccepted(p.send(r.command("k")))
	eventually(t, "the key is gone", func() bool { return r.reserved() == 0 })
	r.wantAccepted(p.send(r.command("k")))
	r.hub.wantRan(2, 2)
	if ids := r.hub.ids(); len(ids) != 2 {
		t.Errorf("under the ids %v", ids)
	}
}
