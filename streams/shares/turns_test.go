package shares

import (
	"slices"
	"strings"
	"testing"
)

// Organizations have turns in which each costs the others as much, hubs within an organization too,
// what is urgent is first, and who waits again after a pause is neither ahead nor behind.
func TestTurns(t *testing.T) {
	t.Parallel()
	order := NewTurns(nil, "work")
	served := func(count int, cost int64) string {
		var names []string
		for range count {
			s, ok := order.Next()
			if !ok {
				break
			}
			names = append(names, s.Org+s.ID)
			order.Spend(s, cost)
		}
		return strings.Join(names, " ")
	}
	add := func(urgent bool, who ...string) {
		for _, name := range who {
			order.Add(Spender{Org: name[:1], ID: name[1:]}, urgent)
		}
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	add(false, "a1", "a2", "a3", "b1", "a1")
	names := strings.Fields(served(5, 10))
	if b := slices.Index(names, "b1"); len(names) != 4 || b > 1 {
		t.Errorf("an organization with one hub beside one with three: got %q", names)
	}
	add(false, "a1")
	check("work of an organization", served(1, 1000), "a1")
	add(false, "a2", "b1", "c1")
	if got := served(2, 1); !strings.Contains(got, "b1") || !strings.Contains(got, "c1") {
		t.Errorf("after work of another organization: got %q, want b1 and c1", got)
	}
	add(false, "b1")
	add(true, "a3")
	check("urgent", served(2, 1), "a3 b1")
	check("the rest", served(5, 1), "a2")
	add(false, "a1", "a2")
	check("the hub that has cost less", served(1, 1), "a2")
	add(false, "b1")
	check("who saved up nothing", served(3, 1), "b1 a1")
	for n := range 10 * maxIdle {
		add(false, "d"+strings.Repeat("x", n))
		served(2, 0)
	}
	if known := len(order.known["d"].spenders.known); known > 3*maxIdle {
		t.Errorf("%d idle spenders are remembered", known)
	}
}

// The metric of who is held back named the ones that waited for others' work.
func TestTurnsNameWhoHasHadMuch(t *testing.T) {
	t.Parallel()
	registry := new(Registry)
	order := NewTurns(registry, "work")
	greedy, innocent := Spender{Org: "greedy"}, Spender{Org: "innocent"}
	order.Add(greedy, false)
	order.Next()
	order.Spend(greedy, 1000)
	order.Add(greedy, false)
	order.Add(innocent, false)
	order.HeldBackWaiting()
	if by := registry.Report()[0].By; len(by) != 1 || by[0].Spender != greedy.Org {
		t.Errorf("got %v held back, want only the one that has had much", by)
	}
}
