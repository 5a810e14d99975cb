package feed

import (
	"math"

	"hubcloud/domain"
)

// unbounded is a number of bytes without a limit, for callers that hold what they read only while
// they look at it.
const unbounded = math.MaxInt

// space is how much a read may still return: events, and bytes of envelopes.
type space struct {
	events, bytes int
	// full reports that the next event was left out for its size.
	full bool
}

// exhausted reports whether nothing more fits.
func (s space) exhausted() bool { return s.events <= 0 || s.full }

// fit returns the events that fit, and the space after them. With atLeastOne the first event fits
// whatever its size.
func (s space) fit(events []domain.EncodedEvent, atLeastOne bool) ([]domain.EncodedEvent, space) {
	for i := range events {
		size := len(events[i].Envelope)
		if s.events <= 0 {
			return events[:i], s
		}
		if size > s.bytes && (i > 0 || !atLeastOne) {
			s.full = true
			return events[:i], s
		}
		s.events, s.bytes = s.events-1, max(s.bytes-size, 0)
	}
	return events, s
}
