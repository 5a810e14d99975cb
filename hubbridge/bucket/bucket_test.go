package bucket_test

import (
	"errors"
	"testing"

	"hubcloud/hubbridge/bucket"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func TestBucket(t *testing.T) {
	t.Parallel()
	ctx, conns := t.Context(), streamstest.Start(t)
	buckets, err := streams.OpenBuckets(ctx, conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := bucket.New(conns.Cloud, "ledger")

	value := "untouched"
	if revision, err := b.Get(ctx, "a", &value); err != nil || revision != 0 ||
		value != "untouched" {
		t.Fatalf("a key without a value: %d %q %v", revision, value, err)
	}
	first, err := b.Put(ctx, "a", "one", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, "a", "two", 0); !errors.Is(err, streams.ErrConflict) {
		t.Errorf("created twice: %v", err)
	}
	second, err := b.Put(ctx, "a", "two", first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, "a", "three", first); !errors.Is(err, streams.ErrConflict) {
		t.Errorf("written over a newer value: %v", err)
	}
	if revision, err := b.Get(ctx, "a", &value); err != nil || revision != second ||
		value != "two" {
		t.Errorf("%d %q %v", revision, value, err)
	}
	if entry, err := buckets.Ledger.Get(ctx, "a"); err != nil || string(entry.Value()) != `"two"` ||
		entry.Revision() != second {
		t.Errorf("through the ordinary client: %v, %v", entry, err)
	}
	if _, err := buckets.Ledger.Put(ctx, "b", []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ctx, "b", &value); err == nil {
		t.Error("a value that is no JSON is read")
	}
}
