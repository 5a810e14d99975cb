package presence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

func connection(cid uint64) domain.Connection { return domain.Connection{Server: "S", CID: cid} }

// parseObservation parses an observation of a test case: +1 is the beginning of connection 1, -1
// its end, -1:x its end for the reason x, =1 that it is open although its end was observed.
func parseObservation(text string) Observation {
	sign, rest := text[:1], text[1:]
	number, reason, given := strings.Cut(rest, ":")
	var cid uint64
	if _, err := fmt.Sscan(number, &cid); err != nil {
		panic(err)
	}
	o := Observation{Connection: connection(cid), Ended: sign == "-", Open: sign == "="}
	if given {
		o.Reason = &reason
	}
	return o
}

// format writes a transition in the same way.
func format(t Transition) string {
	if t.Online {
		return fmt.Sprintf("+%d", t.Connection.CID)
	}
	if t.Reason == nil {
		return fmt.Sprintf("-%d", t.Connection.CID)
	}
	return fmt.Sprintf("-%d:%s", t.Connection.CID, *t.Reason)
}

func TestStep(t *testing.T) {
	t.Parallel()
	const dup = ":" + reasonTakeover
	for name, tc := range map[string]struct {
		observations []string // "wait" lets some seconds pass
		want         string
	}{
		"comes and goes": {[]string{"+1", "-1:x", "+2", "-2"}, "+1 -1:x +2 -2"},
		"reported twice": {
			[]string{"+1", "+1", "-1:x", "-1", "+1", "+2", "+2"}, "+1 -1:x +2",
		},
		"an end of an unknown connection": {[]string{"-7:x", "+1", "-7:x"}, "+1"},
		"taken over": {
			[]string{"+1", "+2", "-1" + dup}, "+1 -1" + dup + " +2",
		},
		"taken over, the old one first": {
			[]string{"+1", "-1" + dup, "+2"}, "+1 -1" + dup + " +2",
		},
		"taken over twice": {
			[]string{"+1", "+2", "+3", "-1" + dup, "-2" + dup},
			"+1 -1" + dup + " +2 -2" + dup + " +3",
		},
		"the connection in between never took over": {
			[]string{"+1", "+2", "+3", "-2" + dup, "-1" + dup}, "+1 -1" + dup + " +3",
		},
		"rejected for taking over too often": {
			[]string{"+1", "+2", "-2" + dup, "wait", "-1:x"}, "+1 -1:x",
		},
		"taken over and ended at once": {
			[]string{"+1", "+2", "-2:x", "-1" + dup}, "+1 -1" + dup + " +2 -2:x",
		},
		"pending connection ended long before": {
			[]string{"+1", "+2", "-2:x", "wait", "-1:y"}, "+1 -1:y",
		},
		"taken over, ended at once, and another": {
			[]string{"+1", "+2", "-2:x", "+3", "-1" + dup}, "+1 -1" + dup + " +2 -2:x +3",
		},
		// A hub whose server could not be reached for a while stayed offline for as long as it
		// stayed connected.
		"open although its end was observed":    {[]string{"+1", "-1", "=1", "=1", "-1:x"}, "+1 -1 +1 -1:x"},
		"open, and never ended":                 {[]string{"+1", "=1", "-1:x"}, "+1 -1:x"},
		"the end of the old connection is late": {[]string{"+1", "+2", "wait", "-1"}, "+1 -1 +2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var recorded domain.Presence
			var pending []Pending
			var got []string
			now := time.Unix(0, 0)
			for _, s := range tc.observations {
				if s == "wait" {
					now = now.Add(endedFor + time.Second)
					continue
				}
				o, before := parseObservation(s), fmt.Sprint(pending)
				transitions, next := Step(recorded, pending, o, now)
				again, _ := Step(recorded, pending, o, now)
				if fmt.Sprint(pending) != before || fmt.Sprint(again) != fmt.Sprint(transitions) {
					t.Fatalf("Step changed its arguments for %s", s)
				}
				pending = next
				for _, transition := range transitions {
					if transition.Online == recorded.Online {
						t.Errorf(
							"Step returned %s for %s: the status stays the same",
							format(transition), s,
						)
					}
					recorded = transition.Apply(recorded, now)
					got = append(got, format(transition))
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("transitions %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	recorded := domain.Presence{Online: true, Connection: connection(1)}
	var pending []Pending
	for cid := uint64(2); cid < 100; cid++ {
		_, pending = Step(
			recorded, pending, Observation{Connection: connection(cid)}, time.Unix(0, 0),
		)
	}
	if len(pending) != maxPending {
		t.Errorf("%d connections are pending, want %d", len(pending), maxPending)
	}
}

func TestMarshalAndRestoreConnection(t *testing.T) {
	t.Parallel()
	reason := "read error"
	for _, p := range []domain.Presence{
		{Online: true, Since: time.Unix(5, 6000).UTC(), PublicIP: "::1", Connection: connection(3)},
		{Since: time.Unix(5, 6000).UTC(), Reason: &reason, Connection: connection(3)},
	} {
		text := MarshalConnection(p)
		if strings.ContainsAny(text, "\r\n") {
			t.Errorf("MarshalConnection = %q, want one line", text)
		}
		got := RestoreConnection(
			domain.Presence{HubID: "h", Online: true, PublicIP: "x", Firmware: []byte(`{}`)}, text,
		)
		if MarshalConnection(got) != text || got.HubID != "h" || got.Firmware == nil {
			t.Errorf("RestoreConnection(%s) = %+v", text, got)
		}
		for _, other := range []string{"", "x", "{}", "[]", `{"online":true}`} {
			if got := RestoreConnection(p, other); MarshalConnection(got) != text {
				t.Errorf("RestoreConnection(%q) = %+v, want no change", other, got)
			}
		}
	}
}

func FuzzBrokerEvent(f *testing.F) {
	f.Add(
		[]byte(
			`{"server":{"id":"S"},"client":{"id":5,"start":"2026-01-02T03:04:05Z","host":"::1","client_id":"hub-aaaa-bbbb-cccc"},"reason":"Client Closed"}`,
		),
		true,
	)
	f.Fuzz(func(t *testing.T, payload []byte, ended bool) {
		hub, o, ok := observationOf(payload, ended)
		if !ok {
			return
		}
		if _, valid := domain.ParseHubID(string(hub)); !valid || o.Connection.Server == "" || o.Ended != ended {
			t.Fatalf("observationOf(%q, %t) = %q, %+v", payload, ended, hub, o)
		}
	})
}
