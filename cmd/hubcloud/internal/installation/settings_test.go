package installation

import (
	"errors"
	"testing"

	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// An installation of format 1 keeps its id and environment, gets journals once, and is not started
// by the programs of format 1 any more: they compare the member environment with their own.
func TestSettingsOfFormat1(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	bucket := jsapi.NewBucket(conns.Cloud, streams.InstallationBucket)
	type format1 struct {
		ID          string `json:"id"`
		Environment string `json:"environment"`
	}
	former := format1{ID: "x", Environment: "live"}
	if _, err := bucket.CompareAndSetJSON(t.Context(), settingsKey, former, 0); err != nil {
		t.Fatal(err)
	}
	want := Settings{ID: "x", Environment: "live", Journals: 3}
	for _, journals := range []int{3, 5} {
		got, err := Open(t.Context(), conns.Cloud, buckets.Installation, "live", journals)
		if err != nil || got != want {
			t.Errorf("Open with %d journals: got %+v, %v, want %+v", journals, got, err, want)
		}
	}
	_, err = Open(t.Context(), conns.Cloud, buckets.Installation, "dev", 3)
	if !errors.As(err, new(usage.Error)) {
		t.Errorf("Open with another environment: got %v, want a usage.Error", err)
	}
	if _, err := bucket.GetJSON(t.Context(), settingsKey, &former); err != nil ||
		former.ID != "x" || former.Environment == "live" {
		t.Errorf("a program of format 1 reads %+v, %v, want another environment", former, err)
	}
	if err := ReplaceID(t.Context(), conns.Cloud, buckets.Installation); err != nil {
		t.Fatal(err)
	}
	got, err := Read(t.Context(), conns.Cloud, buckets.Installation)
	if err != nil || got.ID == "x" || got.Environment != "live" || got.Journals != 3 {
		t.Errorf("after ReplaceID: got %+v, %v, want another id only", got, err)
	}
}
