package installation

import (
	"errors"
	"testing"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// An installation keeps the settings of its first start. A restore gives it another id.
func TestSettings(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	first, err := Open(t.Context(), conns.Cloud, buckets.Installation, "live", 3)
	if err != nil || first.ID == "" || first.Environment != "live" || first.Journals != 3 {
		t.Fatalf("Open: got %+v, %v, want an id, live and 3 journals", first, err)
	}
	got, err := Open(t.Context(), conns.Cloud, buckets.Installation, "live", 5)
	if err != nil || got != first {
		t.Errorf("Open with 5 journals: got %+v, %v, want %+v", got, err, first)
	}
	_, err = Open(t.Context(), conns.Cloud, buckets.Installation, "dev", 3)
	if !errors.As(err, new(UsageError)) {
		t.Errorf("Open with another environment: got %v, want a UsageError", err)
	}
	streamstest.Must(t, ReplaceID(t.Context(), conns.Cloud, buckets.Installation))
	got, err = Read(t.Context(), conns.Cloud, buckets.Installation)
	if err != nil || got.ID == first.ID || got.Environment != "live" || got.Journals != 3 {
		t.Errorf("after ReplaceID: got %+v, %v, want another id only", got, err)
	}
}
