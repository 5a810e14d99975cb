package views

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// deleteView deletes the stream of a hub's log.
func (f *fixture) deleteView(hub domain.HubID) {
	f.Helper()
	streamstest.Must(f, f.js(hub).DeleteStream(f.Context(), streams.HubStream(hub)))
}

// publish stores a message of somebody else in a hub's stream.
func (f *fixture) publish(hub domain.HubID, text string) {
	f.Helper()
	f.store(hub, &nats.Msg{Subject: streams.HubEventSubject(hub), Data: []byte(text)})
}

// store stores a message in a hub's stream.
func (f *fixture) store(hub domain.HubID, msg *nats.Msg) {
	f.Helper()
	// The servers of a cluster learn of a new stream one after the other.
	streamstest.Eventually(f, "the stream of "+string(hub)+" is known", func() bool {
		_, err := jsapi.Append(f.Context(), f.nc(hub), msg)
		if err != nil && !errors.Is(err, jsapi.ErrNoStream) {
			f.Fatal(err)
		}
		return err == nil
	})
}

// makeView creates a hub's stream with the log's first records. Its messages can be deleted.
func (f *fixture) makeView(hub domain.HubID, records int) jetstream.Stream {
	f.Helper()
	var stream jetstream.Stream
	// Right after the stream was deleted, the broker may not be able to create it.
	streamstest.EventuallyNil(f, "the stream is created", func() (err error) {
		stream, err = f.js(hub).CreateStream(f.Context(), jetstream.StreamConfig{
			Name: streams.HubStream(hub), Subjects: []string{streams.LogFilter(hub)},
			Storage: jetstream.FileStorage, AllowDirect: true,
		})
		return err
	})
	for i := range f.stored[hub][:records] {
		msg := newMessage()
		msg.set(&f.stored[hub][i])
		f.store(hub, &msg.Msg)
	}
	return stream
}

// TestDeletedDuringWrites deletes streams again and again while records are added.
func TestDeletedDuringWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Linger = time.Millisecond
	f.start()
	all := hubs(5)
	for n := range 60 {
		f.commit(all...)
		if n%4 == 0 {
			id := all[n%len(all)]
			err := f.js(id).DeleteStream(t.Context(), streams.HubStream(id))
			if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
				t.Fatal(err)
			}
		}
	}
	f.flush()
	// A stream can be deleted after its records were acknowledged: the next one finds that.
	f.commit(all...)
	f.flush()
	f.checkAll(all...)
}

func TestForeignMessage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	for _, records := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("before %d records", records), func(t *testing.T) {
			id := hub(records)
			f.commit(id, id)
			f.flush()
			f.publish(id, "foreign")
			var same []domain.HubID
			for range records {
				same = append(same, id)
			}
			f.commit(same...)
			f.flush()
			f.check(id, 1)
		})
	}
}

// A view that is longer than the log in the journal, which has lost its end, was left as it is: the
// sequences that the journal gave out again were those of other messages in the view.
func TestLogLostItsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	f.commit(hub(8))
	f.flush()
	f.publish(hub(8), "lost")
	f.publish(hub(8), "lost")
	f.stop()
	var calls []uint64
	failed := false
	ended := domain.NewEpochID(0xa)
	f.cfg.LostEnd = func(
		_ context.Context, hub domain.HubID, kept uint64,
	) (domain.EpochID, error) {
		if !failed {
			failed = true
			return ended, errors.New("the directory does not answer")
		}
		calls = append(calls, kept)
		if got := f.state(hub).State.LastSeq; got != 3 {
			t.Errorf("before the new epoch is known, the view ends at %d, want 3", got)
		}
		return ended, nil
	}
	f.start()
	f.awaitEnd(hub(8))
	if got, err := f.Begin(t.Context(), hub(8)); err != nil || got != ended {
		t.Errorf("Begin: got %v, %v, want the epoch that has ended, %v", got, err, ended)
	}
	f.commit(hub(8), hub(8), hub(8))
	f.flush()
	f.check(hub(8), 1)
	f.stop()
	if !slices.Equal(calls, []uint64{1}) {
		t.Errorf("the log begins anew after %v, want once after 1", calls)
	}
}

// TestDamagedAtStart damages views while no Views run. The next ones must find that without a
// record for them.
func TestDamagedAtStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const records = 10
	damages := map[string]func(domain.HubID, jetstream.Stream){
		"missing": func(id domain.HubID, _ jetstream.Stream) { f.deleteView(id) },
		"gap": func(_ domain.HubID, s jetstream.Stream) {
			streamstest.Must(t, s.DeleteMsg(f.Context(), 4))
		},
		"front": func(_ domain.HubID, s jetstream.Stream) {
			streamstest.Must(t, s.Purge(f.Context(), jetstream.WithPurgeSequence(4)))
		},
		"emptied": func(_ domain.HubID, s jetstream.Stream) {
			streamstest.Must(t, s.Purge(f.Context()))
		},
		"short": func(id domain.HubID, _ jetstream.Stream) {
			f.deleteView(id)
			f.makeView(id, 3)
		},
	}
	f.start()
	f.stop()
	ids := map[string]domain.HubID{}
	made := map[string]jetstream.Stream{}
	for name := range damages {
		id := hub(len(ids))
		for range records {
			f.commit(id)
		}
		ids[name], made[name] = id, f.makeView(id, records)
	}
	for name, damage := range damages {
		damage(ids[name], made[name])
	}
	audited := make(chan string, 100)
	f.hook = func(step string) {
		if step == "audited" {
			audited <- step
		}
	}
	f.start()
	for range streamstest.Shards {
		<-audited
	}
	f.flush()
	for name, id := range ids {
		t.Run(name, func(t *testing.T) {
			f.TB = t
			f.check(id, 1)
		})
	}
}

// TestTruncatedFiles truncates and removes files of views while the broker is stopped.
func TestTruncatedFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	all := hubs(4)
	for range 50 {
		f.commit(all...)
	}
	f.flush()
	f.stop()
	f.broker.Stop()
	for n, id := range all {
		account := string(streams.ShardAccount(streams.ShardOf(id, streamstest.Shards)))
		folder := filepath.Join(
			f.broker.Dir(), "jetstream", account, "streams", streams.HubStream(id), "msgs",
		)
		blocks, err := filepath.Glob(filepath.Join(folder, "*.blk"))
		if err != nil || len(blocks) != 1 {
			t.Fatalf("message blocks in %s: got %v, %v, want 1", folder, blocks, err)
		}
		info, err := os.Stat(blocks[0])
		streamstest.Must(t, err)
		err = []func() error{
			func() error { return os.Truncate(blocks[0], info.Size()/2) },
			func() error { return os.Remove(blocks[0]) },
			func() error {
				return errors.Join(
					os.Truncate(blocks[0], 0), os.Remove(filepath.Join(folder, "index.db")),
				)
			},
			func() error { return os.RemoveAll(filepath.Dir(folder)) },
		}[n]()
		streamstest.Must(t, err)
	}
	f.broker.Start(t)
	f.start()
	f.commit(all...)
	f.flush()
	f.checkAll(all...)
}

// TestLifetime writes a view anew whose older records have expired, or are about to. The rest must
// have the lifetime that is left, also after the broker was restarted.
func TestLifetime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.clock = time.Now().Add(-2 * testRetention).UTC()
	f.commit(hub(1), hub(1), hub(1), hub(2))
	const left = 5 * time.Second
	expiring := time.Now().Add(left)
	f.clock = expiring.Add(-testRetention).UTC()
	f.commit(hub(1), hub(1))
	f.clock = time.Now().UTC()
	f.commit(hub(1))
	f.start()
	if s := f.awaitEnd(hub(1)); s.FirstSeq != 4 && time.Now().Before(expiring) {
		t.Errorf("view with old records: begins at %d, want 4", s.FirstSeq)
	}
	if s := f.awaitEnd(hub(2)); s.FirstSeq != 2 || s.LastSeq != 1 {
		t.Errorf(
			"view whose records have expired: has %d to %d, want 2 to 1", s.FirstSeq, s.LastSeq,
		)
	}
	f.stop()
	f.broker.Stop()
	f.broker.Start(t)
	f.start()
	f.commit(hub(2), hub(1))
	f.flush()
	f.check(hub(2), 2)
	streamstest.Eventually(t, "the two records that were about to expire are gone", func() bool {
		return f.state(hub(1)).State.FirstSeq == 6
	})
	f.check(hub(1), 6)
}

// TestIncompatible has a stream that is no hub log under the name of one.
func TestIncompatible(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.js(hub(1)).CreateStream(t.Context(), jetstream.StreamConfig{
		Name: streams.HubStream(hub(1)), Subjects: []string{"something.else"},
	})
	streamstest.Must(t, err)
	f.start()
	f.commit(hub(1), hub(2))
	f.commit(hub(1), hub(2))
	f.awaitEnd(hub(2)) // beside the one that cannot be written
	streamstest.Eventually(t, "no record waits in memory", func() bool {
		return f.value(f.metrics.backlogBytes) == 0 && f.value(f.metrics.behind) == 1
	})
	f.deleteView(hub(1))
	f.flush()
	f.check(hub(1), 1)
}

// TestJournalExpired has a log of which the journal has only the newest records, and a view that
// ends before them.
func TestJournalExpired(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.commit(hub(1), hub(1), hub(2), hub(2))
	f.makeView(hub(1), 2)
	f.makeView(hub(2), 1)
	f.followed()
	f.commit(hub(1), hub(2))
	streamstest.Expire(t, f.conns.Cloud, streams.JournalStream(0), 1)
	f.start()
	f.check(hub(1), 1)
	f.check(hub(2), 3) // its second record is nowhere
}
