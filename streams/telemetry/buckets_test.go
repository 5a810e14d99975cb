package telemetry_test

import (
	"slices"
	"testing"

	"hubcloud/streams/telemetry"
)

func TestLatencyBuckets(t *testing.T) {
	t.Parallel()
	got := telemetry.LatencyBuckets(.001, .01)
	if want := []float64{.001, .0025, .005, .01}; !slices.Equal(got, want) {
		t.Errorf("LatencyBuckets(.001, .01): got %v, want %v", got, want)
	}
}
