package jsapi_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// newBucket starts a broker with an empty bucket.
func newBucket(t *testing.T) (jetstream.KeyValue, jsapi.Bucket) {
	t.Helper()
	nc := streamstest.Start(t).Cloud
	js, err := jetstream.New(nc)
	streamstest.Must(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket: "test", LimitMarkerTTL: time.Minute,
	})
	streamstest.Must(t, err)
	return kv, jsapi.NewBucket(nc, "test")
}

func TestBucket(t *testing.T) {
	t.Parallel()
	kv, b := newBucket(t)
	ctx := t.Context()
	value := "untouched"
	if e, err := b.GetJSON(ctx, "a", &value); err != nil || e.Exists() || e.Revision != 0 ||
		value != "untouched" {
		t.Fatalf("a key without a record: %+v, %v, value %q", e, err, value)
	}
	first, err := b.CompareAndSetJSON(ctx, "a", "one", 0)
	streamstest.Must(t, err)
	if _, err := b.CompareAndSetJSON(ctx, "a", "two", 0); !errors.Is(err, jsapi.ErrConflict) {
		t.Errorf("created twice: %v; want ErrConflict", err)
	}
	second, err := b.CompareAndSetJSON(ctx, "a", "two", first)
	streamstest.Must(t, err)
	if _, err := b.CompareAndSetJSON(ctx, "a", "three", first); !errors.Is(err, jsapi.ErrConflict) {
		t.Errorf("over a newer value: %v; want ErrConflict", err)
	}
	if e, err := b.GetJSON(ctx, "a", &value); err != nil || e.Revision != second || value != "two" {
		t.Errorf("%+v, %v, value %q; want revision %d, two", e, err, value, second)
	}
	if e, err := kv.Get(ctx, "a"); err != nil || string(e.Value()) != `"two"` ||
		e.Revision() != second {
		t.Errorf("through nats.go's client: %v, %v; want revision %d, two", e, err, second)
	}
	if _, err := kv.Put(ctx, "b", []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GetJSON(ctx, "b", &value); err == nil {
		t.Error("a value that is not JSON: nil; want an error")
	}
	if _, err := jsapi.NewBucket(b.Conn(), "none").Get(ctx, "a"); !errors.Is(
		err, jsapi.ErrNoStream,
	) {
		t.Errorf("a bucket that does not exist: %v; want ErrNoStream", err)
	}
}

// A key that was deleted, was purged or has expired has no value, and its marker's revision is what
// the next write must expect.
func TestBucketMarkers(t *testing.T) {
	t.Parallel()
	kv, b := newBucket(t)
	ctx := t.Context()
	for name, remove := range map[string]func(key string, revision uint64) error{
		"deleted": func(key string, _ uint64) error { return kv.Delete(ctx, key) },
		"purged":  func(key string, _ uint64) error { return kv.Purge(ctx, key) },
		"purged-by-header": func(key string, revision uint64) error {
			_, err := b.CompareAndSet(ctx, key, nil, jsapi.PurgeHeader(time.Minute), revision)
			return err
		},
		"deleted-by-header": func(key string, revision uint64) error {
			_, err := b.CompareAndSet(ctx, key, nil, jsapi.DeleteHeader(), revision)
			return err
		},
		"expired": func(key string, revision uint64) error {
			_, err := b.CompareAndSet(ctx, key, nil, jsapi.TTLHeader(time.Second), revision)
			return err
		},
	} {
		revision, err := b.CompareAndSetJSON(ctx, name, "value", 0)
		streamstest.Must(t, err)
		if err := remove(name, revision); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var e jsapi.Entry
		streamstest.EventuallyNil(t, name+" has a marker", func() error {
			if e, err = b.Get(ctx, name); err == nil && !e.Deleted {
				err = errors.New("a value")
			}
			return err
		})
		value := "untouched"
		if got, err := b.GetJSON(ctx, name, &value); err != nil || got.Exists() ||
			value != "untouched" {
			t.Errorf("%s: %+v, %v, value %q; want no value", name, got, err, value)
		}
		if _, err := b.CompareAndSetJSON(ctx, name, "again", 0); !errors.Is(
			err, jsapi.ErrConflict,
		) {
			t.Errorf("%s: created over its marker: %v; want ErrConflict", name, err)
		}
		if _, err := b.CompareAndSetJSON(ctx, name, "again", e.Revision); err != nil {
			t.Errorf("%s: written over its marker: %v", name, err)
		}
	}
}

func TestBucketAll(t *testing.T) {
	t.Parallel()
	kv, b := newBucket(t)
	ctx := t.Context()
	if all, err := b.All(ctx); err != nil || len(all) != 0 {
		t.Errorf("All of an empty bucket: %v, %v; want none", all, err)
	}
	if keys, err := b.Keys(ctx); err != nil || len(keys) != 0 {
		t.Errorf("Keys of an empty bucket: %v, %v; want none", keys, err)
	}
	for _, key := range []string{"a", "b.c", "d", "a"} {
		if _, err := kv.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	streamstest.Must(t, kv.Delete(ctx, "d"))
	all, err := b.All(ctx)
	if err != nil || len(all) != 3 || all[0].Key != "b.c" || all[1].Key != "a" ||
		all[2].Key != "d" || !all[2].Deleted || string(all[1].Value) != "a" {
		t.Errorf("All: %+v, %v; want b.c, a and the marker of d", all, err)
	}
	keys, err := b.Keys(ctx)
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, []string{"a", "b.c", "d"}) {
		t.Errorf("Keys: %v, %v; want a, b.c and d", keys, err)
	}
}
