package portal

import (
	"cmp"
	"strings"

	"hubcloud/domain"
)

// compareNatural compares texts without regard to case, and the numbers in them by value: "Hub 9"
// is before "Hub 10".
func compareNatural(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" && b != "" {
		number, other := leadingDigits(a), leadingDigits(b)
		if number == "" || other == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(number):], b[len(other):]
		number, other = strings.TrimLeft(number, "0"), strings.TrimLeft(other, "0")
		if order := cmp.Or(
			cmp.Compare(len(number), len(other)), cmp.Compare(number, other),
		); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

// leadingDigits returns the digits that a text begins with.
func leadingDigits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

// statusOrder has the order of hubs in lists: those in trouble first.
var statusOrder = map[domain.HubStatus]int{domain.HubOffline: 0, domain.HubUnknown: 1}

// compareHubs compares hubs for lists: by trouble, then by name.
func compareHubs(a, b hubState) int {
	const healthy = 2
	order := func(state hubState) int {
		if order, ok := statusOrder[state.Status]; ok {
			return order
		}
		return healthy
	}
	name := func(state hubState) string { return cmp.Or(state.Name, string(state.ID)) }
	return cmp.Or(
		cmp.Compare(order(a), order(b)), compareNatural(name(a), name(b)), cmp.Compare(a.ID, b.ID),
	)
}

// compareNamedHubs compares hubs by name.
func compareNamedHubs(a, b domain.Hub) int {
	name := func(hub domain.Hub) string {
		if hub.Name != nil {
			return *hub.Name
		}
		return string(hub.ID)
	}
	return cmp.Or(compareNatural(name(a), name(b)), cmp.Compare(a.ID, b.ID))
}

// compareSites compares sites by name.
func compareSites(a, b domain.Site) int {
	return cmp.Or(compareNatural(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}
