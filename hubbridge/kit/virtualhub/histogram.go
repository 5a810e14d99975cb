package virtualhub

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// bucketsPerOctave is the buckets per doubling of the duration. With eight, a quantile is too long
// by at most an eighth.
const bucketsPerOctave = 8

// histogram counts durations of a microsecond and more, without a lock. The zero histogram is
// empty.
type histogram struct {
	buckets [bucketsPerOctave * 40]atomic.Uint64
}

func (h *histogram) add(d time.Duration) {
	h.buckets[min(bucketOf(d), len(h.buckets)-1)].Add(1)
}

// bucketOf returns the index of the bucket of d. The buckets of an octave are of equal width.
func bucketOf(d time.Duration) int {
	us := uint64(max(d/time.Microsecond, 1))
	octave := bits.Len64(us) - 1
	return octave*bucketsPerOctave + int((us<<3>>octave)&(bucketsPerOctave-1))
}

// upperBound returns the approximate end of a bucket.
func upperBound(bucket int) time.Duration {
	octave, step := bucket/bucketsPerOctave, bucket%bucketsPerOctave
	return time.Duration(uint64(bucketsPerOctave+step+1)<<octave>>3) * time.Microsecond
}

// quantile returns an upper bound of the quantile q, 0 to 1, and 0 if the histogram is empty.
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
			return upperBound(i)
		}
	}
	return upperBound(len(h.buckets) - 1)
}
