package commands_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

// TestAccepted: the caller gets the channel, and the hub's event log has both records.
func TestAccepted(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	for _, key := range []string{"k", ""} {
		channel, err := p.send(cloud.command(key))
		cloud.wantAccepted(channel, err)
		if channel.Key != "lock" || channel.Unit != nil || string(channel.Value) != "true" ||
			*channel.ObservedAt != "2026-01-02T03:04:05.000000Z" || !channel.Available {
			t.Errorf("%+v", channel)
		}
	}
	cloud.hub.wantRan(2, 2)
	cloud.wantRecords("requested accepted requested accepted")
	if one := cloud.records()[0]; one.RequestID != "R1" { // see TestHistory for the others
		t.Errorf("got the record %+v, want the request's id", one)
	}
	if got := p.count("total"); got != 2 {
		t.Errorf("%v commands counted, want 2", got)
	}
}

// TestFinalAnswers: a repeat gets the first answer, also when the hub is offline, at another
// replica and after a restart.
func TestFinalAnswers(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	first := map[string]outcome{}
	for name, answer := range map[string]string{
		"accepted":            "", // the hub's usual answer
		"no such device":      rejects("not_found"),
		"invalid value":       rejects("invalid_request"),
		"command refused":     rejects("command_refused"),
		"without value, unit": bare,
	} {
		if answer == "" {
			cloud.hub.set(func(h *hub) { h.act = nil })
		} else {
			cloud.hub.answersAll(answer, true)
		}
		first[name] = p.sent(cloud.command(name))
	}
	cloud.hub.set(func(h *hub) { h.offline, h.act = true, nil })
	p.kill()
	for _, p := range []*replica{cloud.replica("r1"), cloud.replica("r2")} {
		for name, want := range first {
			for range 3 {
				if again := p.sent(cloud.command(name)); again != want {
					t.Errorf("%s, repeated: got %+v, want the first answer, %+v", name, again, want)
				}
			}
		}
		if got := p.count("repeated_total"); got != 15 {
			t.Errorf("%v repeats counted, want 15", got)
		}
	}
	cloud.hub.wantRan(5, 5)
	if got := strings.Fields(cloud.outcomes()); len(got) > 10 {
		t.Errorf("the log has the outcomes %s, want at most two records of each", got)
	}
}

const bare = `"result":{"channel":{"key":"lock","endpoint":0,"kind":"lock","available":false,` +
	`"status":"pending"}}`

// TestNotFinal: after an outcome that is not final the same key sends the same command ID again,
// and the hub's later answer is final.
func TestNotFinal(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p, other := cloud.replica("r1", hubTimeout(200*time.Millisecond)), cloud.replica("r2")
	var records []string
	for i, tc := range []struct {
		answer string
		code   domain.Code
	}{
		{rejects("hub_unavailable"), domain.CodeHubUnavailable},
		{rejects("on_fire"), domain.CodeHubError},
		{"", domain.CodeHubTimeout},
	} {
		cloud.hub.answersAll(tc.answer, false)
		for range 2 {
			_, err := p.send(cloud.command(string(tc.code)))
			wantCode(t, err, tc.code)
		}
		cloud.hub.set(func(h *hub) { h.act = nil })
		channel, err := other.send(cloud.command(string(tc.code)))
		cloud.wantAccepted(channel, err)
		cloud.hub.wantRan(3*(i+1), i+1)
		if ids := cloud.hub.ids(); len(ids) != i+1 {
			t.Errorf("%s: the hub got the command IDs %v", tc.code, ids)
		}
		records = append(records, strings.ReplaceAll(
			"requested X requested X requested accepted", "X", string(tc.code),
		))
	}
	cloud.wantRecords(strings.Join(records, " "))
}

// TestOffline: a command to an offline hub is rejected at once. It stores nothing, so that its key
// is free for any command.
func TestOffline(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	p := cloud.replica("r1")
	cloud.hub.set(func(h *hub) { h.offline = true })
	for _, key := range []string{"k", ""} {
		began := time.Now()
		_, err := p.send(cloud.command(key))
		wantCode(t, err, domain.CodeHubOffline)
		if took := time.Since(began); took > 8*time.Second { // the hub has ten
			t.Errorf("hub_offline after %v, want at once", took)
		}
	}
	if n := cloud.reserved(); n != 0 || cloud.outcomes() != "" {
		t.Errorf("%d keys reserved; the log holds %s", n, cloud.outcomes())
	}
	cloud.hub.set(func(h *hub) { h.offline = false })
	other := cloud.command("k")
	other.Value = json.RawMessage(`true`)
	if channel, err := p.send(other); err != nil || string(channel.Desired) != "true" {
		t.Errorf("%+v, %v", channel, err)
	}
	_, err := p.send(cloud.command("k"))
	wantCode(t, err, domain.CodeIdempotencyConflict)
	cloud.hub.wantRan(1, 1)
}

// TestWindow: a key stands for its command for the window, counted from the reservation, and then
// for the next command.
func TestWindow(t *testing.T) {
	t.Parallel()
	cloud := newTestCloud(t)
	now := time.Now()
	clock := func(s *setup) {
		s.keys.Window, s.keys.Now = time.Hour, func() time.Time {
			cloud.hub.mu.Lock()
			defer cloud.hub.mu.Unlock()
			return now
		}
	}
	later := func(d time.Duration) { cloud.hub.set(func(*hub) { now = now.Add(d) }) }
	p := cloud.replica("r1", clock)
	cloud.hub.answersAll(rejects("hub_unavailable"), false)
	_, err := p.send(cloud.command("k"))
	wantCode(t, err, domain.CodeHubUnavailable)
	later(30 * time.Minute)
	cloud.hub.set(func(h *hub) { h.act = nil })
	cloud.wantAccepted(p.send(cloud.command("k")))
	later(30*time.Minute - time.Microsecond)
	cloud.wantAccepted(p.send(cloud.command("k")))
	cloud.hub.wantRan(2, 1)
	later(time.Microsecond)
	other := cloud.command("k")
	other.Value = json.RawMessage(`true`)
	if channel, err := p.send(other); err != nil || string(channel.Desired) != "true" {
		t.Errorf("%+v, %v", channel, err)
	}
	cloud.hub.wantRan(3, 2)
	if ids := cloud.hub.ids(); len(ids) != 2 {
		t.Errorf("the hub got the command IDs %v", ids)
	}
}
