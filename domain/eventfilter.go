package domain

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// EventFilter chooses events of an organization's feed. The zero value chooses all.
type EventFilter struct {
	// Sites and Hubs choose the events of hubs that are at one of the sites now, and of these hubs;
	// empty for all.
	Sites []string `json:"site_id,omitempty"`
	Hubs  []HubID  `json:"hub_id,omitempty"`
	// Types chooses events of these types; an entry that ends in `.*` chooses those that begin with
	// what is before the asterisk. Empty for all. Events feed.gap are always chosen.
	Types []string `json:"type,omitempty"`
	// Within are the sites that the reader reaches; nil for all. Sites chooses among them.
	Within []string `json:"-"`
	// Part, from 1 to Parts, chooses the hubs of one of that many parts. Parts is 0 for all hubs.
	Part, Parts int `json:"-"`
}

// PartOf returns the part of a hub, from 1 to parts: 1 plus the 64-bit FNV-1a hash of its id modulo
// the number of parts. It must never change: clients that divide the hubs rely on it.
func PartOf(hub HubID, parts int) int {
	h := fnv.New64a()
	h.Write([]byte(hub))
	return int(h.Sum64()%uint64(parts)) + 1
}

// HasHub reports whether events of a hub at that site are chosen.
func (f *EventFilter) HasHub(hub HubID, site string) bool {
	return (len(f.Hubs) == 0 || slices.Contains(f.Hubs, hub)) &&
		(len(f.Sites) == 0 || slices.Contains(f.Sites, site)) && (f.Within == nil || slices.Contains(f.Within, site)) &&
		(f.Parts == 0 || PartOf(hub, f.Parts) == f.Part)
}

// HasAllHubs reports whether the events of all hubs are chosen.
func (f *EventFilter) HasAllHubs() bool {
	return len(f.Hubs) == 0 && len(f.Sites) == 0 && f.Within == nil && f.Parts == 0
}

// HasAllTypes reports whether events of all types are chosen.
func (f *EventFilter) HasAllTypes() bool { return len(f.Types) == 0 }

// HasType reports whether events of a type are chosen.
func (f *EventFilter) HasType(typ string) bool {
	if f.HasAllTypes() {
		return true
	}
	for _, want := range f.Types {
		prefix, isPrefix := strings.CutSuffix(want, "*")
		if typ == want || isPrefix && strings.HasPrefix(typ, prefix) {
			return true
		}
	}
	return false
}

// CheckTypes returns an invalid_request, which names the field, for types that no event can have.
func (f *EventFilter) CheckTypes(field string) error {
	const most, longest = 100, 100
	if len(f.Types) > most {
		return Errorf(CodeInvalidRequest, "%s: must be at most %d", field, most)
	}
	for _, t := range f.Types {
		if t == "" || len(t) > longest || strings.Contains(strings.TrimSuffix(t, ".*"), "*") {
			return Errorf(
				CodeInvalidRequest, "%s: must be event types, or the first part of types and `.*`", field,
			)
		}
	}
	return nil
}

// Key returns a text that differs for different filters.
func (f *EventFilter) Key() string {
	return fmt.Sprintf(
		"%q %q %q %#v %d/%d", f.Sites, f.Hubs, f.Types, f.Within, f.Part, f.Parts,
	)
}
