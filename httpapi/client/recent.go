package client

import "hash/maphash"

// rememberedCursors is how many cursors a sequence of events knows again: what a service could
// deliver twice is the few events around the place of a reconnect.
const rememberedCursors = 1 << 14

// recent knows the last cursors that were added, by 64-bit hashes under a seed of its own: that one
// of them equals a new cursor's by chance is as likely as one in 10^15.
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

// has says whether the cursor is known.
func (r *recent) has(cursor string) bool {
	_, known := r.known[maphash.String(r.seed, cursor)]
	return known
}

// add says whether the cursor was unknown. It takes the place of the oldest when there is no more.
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
