package client

import "hash/maphash"

// rememberedCursors is how many cursors a sequence of events remembers. A service could repeat only
// the few events around a reconnect.
const rememberedCursors = 1 << 14

// recent remembers the last cursors that were added, as 64-bit hashes with a random seed. The
// chance that a new cursor has the hash of one of them is about 1 in 10^15.
type recent struct {
	seed   maphash.Seed
	known  map[uint64]struct{}
	order  []uint64
	oldest int
	most   int
}

func newRecent(most int) *recent {
	return &recent{seed: maphash.MakeSeed(), known: map[uint64]struct{}{}, most: most}
}

// has reports whether the cursor is remembered.
func (r *recent) has(cursor string) bool {
	_, known := r.known[maphash.String(r.seed, cursor)]
	return known
}

// add remembers the cursor in place of the oldest one. It returns false if the cursor is remembered
// already.
func (r *recent) add(cursor string) bool {
	hash := maphash.String(r.seed, cursor)
	if _, known := r.known[hash]; known {
		return false
	}
	if len(r.order) < r.most {
		r.order = append(r.order, hash)
	} else {
		delete(r.known, r.order[r.oldest])
		r.order[r.oldest] = hash
		r.oldest = (r.oldest + 1) % r.most
	}
	r.known[hash] = struct{}{}
	return true
}
