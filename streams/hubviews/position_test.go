package hubviews

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// storedPosition returns the position in the bucket.
func (f *fixture) storedPosition() uint64 {
	f.Helper()
	var stored positionRecord
	if _, err := f.bucket.GetJSON(f.Context(), f.positionKey(), &stored); err != nil {
		f.Fatal(err)
	}
	return stored.Synced
}

// TestSynced waits until what was written counts as synced. The next Views must not compare it with
// the journal, but the rest.
func TestSynced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var mu sync.Mutex
	var synced []streams.Account
	f.cfg.SyncFolders = func(account streams.Account) error {
		mu.Lock()
		defer mu.Unlock()
		synced = append(synced, account)
		if len(synced) == 1 {
			return errors.New("the disk fails once")
		}
		return nil
	}
	f.cfg.SyncDelay = 100 * time.Millisecond
	f.start()
	f.write(hub(1), hub(1))
	f.flush()
	end := f.End()
	streamstest.Eventually(t, "the position is stored", func() bool {
		return f.storedPosition() == end
	})
	mu.Lock()
	account := streams.ShardAccount(streams.ShardOf(hub(1), streamstest.Shards))
	if want := []streams.Account{account, account}; !slices.Equal(synced, want) {
		t.Errorf("synced folders: got those of %v, want %v", synced, want)
	}
	mu.Unlock()
	f.stop()

	f.commit(hub(2))
	f.cfg.SyncDelay = time.Hour
	compared := f.startAndCompare()
	if !slices.Equal(compared, []domain.HubID{hub(2)}) {
		t.Errorf("views compared with the journal: got those of %v, want %v", compared, hub(2))
	}
	f.write(hub(3))
	f.flush()
	f.stop()
	if got := f.storedPosition(); got != end {
		t.Errorf("position before the delay has passed: got %d, want %d", got, end)
	}
	if err := f.StoreWritten(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.storedPosition(); got != f.End() {
		t.Errorf("position after StoreWritten: got %d, want %d", got, f.End())
	}
	if compared := f.startAndCompare(); len(compared) > 0 {
		t.Errorf("views compared after StoreWritten: got those of %v, want none", compared)
	}
	f.stop()

	// A position of another journal.
	if err := f.storePosition(t.Context(), f.End()+1); err != nil {
		t.Fatal(err)
	}
	if compared := f.startAndCompare(); len(compared) != 3 {
		t.Errorf("views compared with another journal: got those of %v, want all 3", compared)
	}
}

// startAndCompare starts Views and returns the hubs whose views were compared with the journal once
// the audit has ended.
func (f *fixture) startAndCompare() []domain.HubID {
	f.Helper()
	audited := make(chan struct{}, streamstest.Shards)
	f.hook = func(step string) {
		if step == "audited" {
			audited <- struct{}{}
		}
	}
	f.start()
	f.hook = nil
	for range streamstest.Shards {
		select {
		case <-audited:
		case <-time.After(time.Minute):
			f.Fatal("the audit does not end within a minute")
		}
	}
	f.flush()
	var compared []domain.HubID
	for _, s := range f.ownShards() {
		s.mu.Lock()
		for id, v := range s.hubs {
			if v.state == stateCurrent {
				compared = append(compared, id)
			}
		}
		s.mu.Unlock()
	}
	return compared
}

// TestJournalExpired has logs of which the journal has only the newest records.
func TestJournalExpired(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, time.Second)
	f.commit(hub(1), hub(1), hub(2), hub(2), hub(3), hub(3))
	f.makeView(hub(1), 2)
	f.makeView(hub(2), 1)
	streamstest.Eventually(t, "the journal's commits have expired", func() bool {
		info, err := jsapi.New(f.conns.Cloud).Info(t.Context(), streams.JournalStream(0))
		return err == nil && info.State.Msgs == 0
	})
	declareJournal(t, f.conns, testRetention)
	f.commit(hub(1), hub(2), hub(3))
	f.start()
	f.flush()
	f.check(hub(1), 1)
	f.check(hub(2), 3) // its second record is nowhere
	f.check(hub(3), 3)
	if err := f.Rebuild(t.Context(), hub(1)); err != nil {
		t.Fatal(err)
	}
	f.check(hub(1), 1) // the older messages were kept
}
