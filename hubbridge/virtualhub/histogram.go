package virtualhub

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// perOctave is how many buckets a histogram has for each doubling: eight are right within 9 %.
const perOctave = 8

// histogram counts durations from a microsecond on, without a lock. The zero histogram is empty.
type histogram struct {
	buckets [perOctave * 40]atomic.Uint64
}

func (h *histogram) add(d time.Duration) {
	h.buckets[min(bucket(d), len(h.buckets)-1)].Add(1)
}

// bucket numbers the durations: within an octave the steps are equal.
func bucket(d time.Duration) int {
	us := uint64(max(d/time.Microsecond, 1))
	octave := bits.Len64(us) - 1
	return octave*perOctave + int((us<<3>>octave)&(perOctave-1))
}

// upper is the longest duration of a bucket, near enough.
func upper(bucket int) time.Duration {
	octave, step := bucket/perOctave, bucket%perOctave
	return time.Duration(uint64(perOctave+step+1)<<octave>>3) * time.Microsecond
}

// quantile is the duration that the share q of all durations is not longer than; 0 when there are
// none.
func (h *histogram) quantile(q float64) time.Duration {
	var total uint64
	for i := range h.buckets {
		total += h.buckets[i].Load()
	}
	if total == 0 {
		return 0
	}
	rank, seen := uint64(q*float64(total-1)), uint64(0)
	for i := range h.buckets {
		if seen += h.buckets[i].Load(); seen > rank {
			return upper(i)
		}
	}
	return upper(len(h.buckets) - 1)
}

func (h *histogram) reset() {
	for i := range h.buckets {
		h.buckets[i].Store(0)
	}
}
