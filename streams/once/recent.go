package once

import (
	"hash/maphash"
	"sync/atomic"
)

// recentNames remembers which reservations this process has tried to make, about the last
// recentSlots of them, by their hashes. It is safe for concurrent use.
type recentNames struct {
	seed  maphash.Seed
	slots [recentSlots]atomic.Uint64
}

// recentSlots takes 512 KB.
const recentSlots = 1 << 16

func newRecentNames() *recentNames { return &recentNames{seed: maphash.MakeSeed()} }

// add remembers a name and reports whether it is remembered already. It forgets the name that had
// the same slot.
func (r *recentNames) add(name string) (known bool) {
	hash := maphash.String(r.seed, name)
	return r.slots[hash%recentSlots].Swap(hash) == hash
}
