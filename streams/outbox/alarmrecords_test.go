package outbox_test

import (
	"bytes"
	"errors"
	"testing"

	"hubcloud/streams"
	"hubcloud/streams/outbox"
	"hubcloud/streams/streamstest"
)

const org = "01930000-0000-7000-8000-00000000000a"

func openRecords(t *testing.T) *outbox.AlarmRecords {
	t.Helper()
	conns := streamstest.Start(t)
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	return outbox.OpenAlarmRecords(conns.Cloud)
}

// Of two processes that write the same record, the second fails and has written nothing.
func TestRecords(t *testing.T) {
	t.Parallel()
	store, ctx := openRecords(t), t.Context()
	large := bytes.Repeat([]byte(`{"hub":"hub-7k2m-q4xd-93ta"}`), 100_000) // 2.8 MB
	first, err := store.Put(ctx, org, outbox.AlarmRecord{Content: large})
	streamstest.Must(t, err)
	for _, revision := range []uint64{0, first + 1} {
		_, err := store.Put(ctx, org, outbox.AlarmRecord{Content: []byte("x"), Revision: revision})
		if !errors.Is(err, outbox.ErrConflict) {
			t.Errorf("put at revision %d: got %v, want ErrConflict", revision, err)
		}
	}
	all, err := store.All(ctx)
	if err != nil || len(all) != 1 || all[org].Revision != first ||
		!bytes.Equal(all[org].Content, large) {
		t.Errorf("got %d records with revision %d, %v, want the first", len(all), all[org].Revision, err)
	}
	second, err := store.Put(ctx, org, outbox.AlarmRecord{Content: []byte("y"), Revision: first})
	if err != nil || second <= first {
		t.Errorf("put at the right revision: got %d, %v", second, err)
	}
}

// The key is the same for all who ask, however many ask at first.
func TestUnsubscribeKey(t *testing.T) {
	t.Parallel()
	store := openRecords(t)
	keys := make(chan [32]byte, 8)
	for range cap(keys) {
		go func() {
			key, err := store.UnsubscribeKey(t.Context())
			if err != nil {
				t.Error(err)
			}
			keys <- key
		}()
	}
	first := <-keys
	for range cap(keys) - 1 {
		if <-keys != first {
			t.Error("two keys differ")
		}
	}
	if first == [32]byte{} {
		t.Error("the key is not random")
	}
}
