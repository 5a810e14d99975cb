package lease

// Hurry makes a keeper twice as fast in everything.
func (k *Keeper) Hurry() {
	k.times.renewEvery /= 2
	k.times.holdFor /= 2
	k.times.readEvery /= 2
	k.times.readSoon /= 2
	k.times.silentAfter /= 2
}
