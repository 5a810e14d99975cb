package broker

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"hubcloud/streams/shares"
)

// TestExcess checks which connections are closed when too many have not logged in.
func TestExcess(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	var id uint64
	from := func(address string, n int, hello, trusted bool) (conns []pending) {
		for range n {
			id++
			conns = append(conns, pending{
				id: id, from: source{shares.AddressBlock(netip.MustParseAddr(address)), true},
				since: begun.Add(time.Duration(id) * time.Millisecond), hello: hello,
				trusted: trusted,
			})
		}
		return conns
	}
	attack := from("192.0.2.1", 90, false, false)
	other := from("192.0.2.2", 5, false, false)
	network := slices.Concat(
		from("2001:db8::1", 30, false, false), from("2001:db8::2", 30, false, false),
	)
	hubs := from("192.0.2.3", 70, true, false)
	trusted := from("192.0.2.1", 5, true, true)
	late := from("192.0.2.1", 20, true, false)
	for name, tt := range map[string]struct {
		conns []pending
		slots int
		want  []pending
	}{
		"few":                   {attack[:50], 100, nil},
		"oldest of one address": {attack, 100, attack[:40]},
		"address with the most": {slices.Concat(other, attack), 100, attack[:45]},
		"an IPv6 /64 is one address": {
			slices.Concat(other, network), 100, network[:15],
		},
		"reconnecting hubs stay":            {hubs, 100, nil},
		"silent before ClientHello":         {slices.Concat(hubs, attack), 100, attack[:78]},
		"ClientHello without a certificate": {slices.Concat(hubs, late), 100, hubs[:15]},
		"valid certificates last": {
			slices.Concat(trusted, hubs, late), 100, hubs[:20],
		},
		"no slots left":               {attack[:3], 0, attack[:3]},
		"more logged in than allowed": {attack[:3], -1, attack[:3]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := excess(slices.Clone(tt.conns), tt.slots)
			ids := func(conns []pending) (ids []uint64) {
				for _, c := range conns {
					ids = append(ids, c.id)
				}
				slices.Sort(ids)
				return ids
			}
			if !slices.Equal(ids(got), ids(tt.want)) {
				t.Errorf("closed: got %v, want %v", ids(got), ids(tt.want))
			}
		})
	}
}
