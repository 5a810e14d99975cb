package projections

import (
	"slices"
	"time"
)

// maxSightings bounds what a backlog remembers. With more, the oldest is kept, and of the others the newer half.
const maxSightings = 64

// backlog tells for how long the oldest event that a projection lacks has been there, from how long the stream was each time somebody looked:
// too little by the time between two looks, and by all that was before the first. The zero value lacks nothing.
type backlog struct{ seen []sighting }

// sighting says that at that time the stream was that long.
type sighting struct {
	head uint64
	at   time.Time
}

// look takes where the projection is, how long its stream is, and the time.
func (b *backlog) look(sequence, head uint64, now time.Time) time.Duration {
	b.seen = slices.DeleteFunc(b.seen, func(s sighting) bool { return s.head <= sequence })
	if head <= sequence {
		return 0
	}
	if n := len(b.seen); n == 0 || b.seen[n-1].head < head {
		if n == maxSightings {
			b.seen = append(b.seen[:1], b.seen[n/2:]...)
		}
		b.seen = append(b.seen, sighting{head, now})
	}
	return now.Sub(b.seen[0].at)
}
