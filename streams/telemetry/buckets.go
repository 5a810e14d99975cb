package telemetry

import "slices"

// LatencyBuckets returns the bounds of a histogram of latencies in seconds: three for each power of
// ten, as far as they are within lowest and highest, 0.1 ms and 10 s.
func LatencyBuckets(lowest, highest float64) []float64 {
	bounds := []float64{
		.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
	}
	return slices.DeleteFunc(bounds, func(bound float64) bool {
		return bound < lowest || bound > highest
	})
}
