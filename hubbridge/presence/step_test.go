package presence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

func connection(cid uint64) domain.Connection { return domain.Connection{Server: "S", CID: cid} }

// seen is one observation of a test: +1 is the beginning of connection 1, -1 its end, -1:x its end
// with a reason.
func seen(text string) Observation {
	sign, rest := text[:1], text[1:]
	number, reason, given := strings.Cut(rest, ":")
	var cid uint64
	if _, err := fmt.Sscan(number, &cid); err != nil {
		panic(err)
	}
	o := Observation{Connection: connection(cid), Ended: sign == "-"}
	if given {
		o.Reason = &reason
	}
	return o
}

func say(t Transition) string {
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
		seen []string // "wait" lets some seconds pass
		want string
	}{
		"comes and goes": {[]string{"+1", "-1:x", "+2", "-2"}, "+1 -1:x +2 -2"},
		"said twice": {
			[]string{"+1", "+1", "-1:x", "-1", "+1", "+2", "+2"}, "+1 -1:x +2",
		},
		"an end that nobody knows of": {[]string{"-7:x", "+1", "-7:x"}, "+1"},
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
		"the one in between never did": {
			[]string{"+1", "+2", "+3", "-2" + dup, "-1" + dup}, "+1 -1" + dup + " +3",
		},
		"refused for coming too often": {
			[]string{"+1", "+2", "-2" + dup, "wait", "-1:x"}, "+1 -1:x",
		},
		"taken over and gone at once": {
			[]string{"+1", "+2", "-2:x", "-1" + dup}, "+1 -1" + dup + " +2 -2:x",
		},
		"gone long before": {
			[]string{"+1", "+2", "-2:x", "wait", "-1:y"}, "+1 -1:y",
		},
		"gone at once, and another": {
			[]string{"+1", "+2", "-2:x", "+3", "-1" + dup}, "+1 -1" + dup + " +2 -2:x +3",
		},
		"the old one's end is never told": {[]string{"+1", "+2", "wait", "-1"}, "+1 -1 +2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told domain.Presence
			var held []Held
			var said []string
			now := time.Unix(0, 0)
			for _, s := range tc.seen {
				if s == "wait" {
					now = now.Add(shortLife + time.Second)
					continue
				}
				o, before := seen(s), fmt.Sprint(held)
				transitions, next := Step(told, held, o, now)
				again, _ := Step(told, held, o, now)
				if fmt.Sprint(held) != before || fmt.Sprint(again) != fmt.Sprint(transitions) {
					t.Fatalf("%s changed what it was given", s)
				}
				held = next
				for _, transition := range transitions {
					if transition.Online == told.Online {
						t.Errorf("%s tells %s twice in a row", s, say(transition))
					}
					told = After(told, transition, now)
					said = append(said, say(transition))
				}
			}
			if got := strings.Join(said, " "); got != tc.want {
				t.Errorf("told %s, wanted %s", got, tc.want)
			}
		})
	}
}

func TestHeldIsBounded(t *testing.T) {
	t.Parallel()
	told := domain.Presence{Online: true, Connection: connection(1)}
	var held []Held
	for cid := uint64(2); cid < 100; cid++ {
		_, held = Step(told, held, Observation{Connection: connection(cid)}, time.Unix(0, 0))
	}
	if len(held) != maxHeld {
		t.Errorf("%d are held", len(held))
	}
}

func TestTellAndRecall(t *testing.T) {
	t.Parallel()
	reason := "read error"
	for _, p := range []domain.Presence{
		{Online: true, Since: time.Unix(5, 6000).UTC(), PublicIP: "::1", Connection: connection(3)},
		{Since: time.Unix(5, 6000).UTC(), Reason: &reason, Connection: connection(3)},
	} {
		text := Tell(p)
		if strings.ContainsAny(text, "\r\n") {
			t.Errorf("%q is not on one line", text)
		}
		got := Recall(
			domain.Presence{HubID: "h", Online: true, PublicIP: "x", Firmware: []byte(`{}`)}, text,
		)
		if Tell(got) != text || got.HubID != "h" || got.Firmware == nil {
			t.Errorf("recalled %+v of %s", got, text)
		}
		for _, other := range []string{"", "x", "{}", "[]", `{"online":true}`} {
			if got := Recall(p, other); Tell(got) != text {
				t.Errorf("%q recalled %+v", other, got)
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
		if _, valid := domain.ParseHubID(string(hub)); !valid || o.Connection.Server == "" ||
			o.Ended != ended {
			t.Fatalf("%s %+v of %q", hub, o, payload)
		}
	})
}
