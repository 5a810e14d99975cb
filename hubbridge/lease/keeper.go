package lease

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// renewEvery leaves two more tries before the holder lets go by itself, and letGo some seconds
	// before the broker takes the key away.
	renewEvery = 3 * time.Second
	letGo      = 7 * time.Second
	// retryEvery is how often a shard that should be held and is not is tried for again, if nothing
	// is heard in between.
	retryEvery = time.Second
	// readEvery is how often the bucket is read afresh, and readSoon how often while this replica
	// lacks a shard that it should hold.
	readEvery = 10 * time.Second
	readSoon  = 3 * time.Second
	// silence is how long a key must not have been renewed until its replica counts as gone, also
	// when the broker keeps it: longer than the broker would keep it.
	silence = streams.LeaseTTL + time.Second
	// tellEvery is how often it is logged what keeps this replica from a shard, once it has lacked
	// it for tellAfter: being handed one takes less.
	tellEvery = 10 * time.Second
	tellAfter = 5 * time.Second
	// operationTimeout bounds one operation on the bucket, and removeTimeout giving a key up, for
	// which a process that stops may have no time.
	operationTimeout = 2 * time.Second
	removeTimeout    = time.Second
	// readTimeout bounds reading the bucket.
	readTimeout = 8 * time.Second
)

// Why the context of a served shard ends, beside the end of Run.
var (
	// ErrLost says that the lease is lost, or not known to be held any more: the shard may have
	// another holder already, nothing may be written.
	ErrLost = errors.New("the shard's lease is lost")
	// ErrHandedOver says that another replica is to have the shard, and waits for this one to
	// finish.
	ErrHandedOver = errors.New("the shard goes to another replica")
)

// entry is the value of a key: who holds the shard, or whose key it is.
type entry struct {
	Replica string `json:"replica"`
}

// takingIt is why a shard is missing while nothing has gone wrong.
const takingIt = "its lease is being taken"

const (
	shardPrefix   = "shard."
	replicaPrefix = "replica."
)

// Keeper holds this replica's leases.
type Keeper struct {
	cloud   *nats.Conn
	bucket  jetstream.KeyValue
	replica string
	shards  int
	log     *slog.Logger
	metrics *metrics

	mu    sync.Mutex
	share []int
}

// NewKeeper makes the keeper of a replica, whose id ([A-Za-z0-9_-]+) stays the same over its
// restarts and is nobody else's, in the bucket streams.Buckets.Leases; cloud is the connection to
// the bucket's account. Its metrics are registered with r, unless that is nil.
func NewKeeper(
	cloud *nats.Conn, bucket jetstream.KeyValue, replica string, shards int, log *slog.Logger,
	r prometheus.Registerer,
) *Keeper {
	return &Keeper{
		cloud:   cloud,
		bucket:  bucket,
		replica: replica,
		shards:  shards,
		log:     log,
		metrics: newMetrics(r),
	}
}

// Share gives the shards that this replica should hold, as far as it knows: nil before it has seen
// who else is there.
func (k *Keeper) Share() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.share)
}

// Run takes and keeps leases until ctx ends, and calls serve for each shard it holds, each in its
// own goroutine. serve's context ends with ctx or with the lease; its cause says why (ErrLost,
// ErrHandedOver). serve must then return soon, and the lease is given up when it has; a serve that
// returns before that ends Run with its error. Run returns when every serve has returned.
//
// held reports whether the lease is known to be held at that moment, by this process's own clock:
// false from when the broker may have given it to somebody else, even if serve's context has not
// ended yet, as in a process that has stood still.
func (k *Keeper) Run(
	ctx context.Context, serve func(ctx context.Context, shard int, held func() bool) error,
) error {
	run := &running{
		Keeper: k, serve: serve, entries: map[string]known{}, mine: map[int]*holding{},
		over: make(chan over), reads: make(chan reading),
		missing: map[int]*missing{},
	}
	return run.run(ctx)
}

// running is the state of one Run. It belongs to Run's goroutine.
type running struct {
	*Keeper
	serve func(ctx context.Context, shard int, held func() bool) error
	// entries is the bucket.
	entries map[string]known
	// mine holds the shards that are held or being taken.
	mine map[int]*holding
	over chan over

	// reads delivers what the bucket held when it was read afresh. reading reports that this is
	// under way; readAt is when it began last, and stale that something has shown since that
	// entries is wrong.
	reads   chan reading
	reading bool
	readAt  time.Time
	stale   bool
	// missing holds what keeps this replica from each shard that it should have and has not.
	missing map[int]*missing
}

// known is what is known of a key.
type known struct {
	entry
	revision uint64
	// deleted reports that this is the mark of a key that was deleted or has expired.
	deleted bool
	// since is when the revision was heard of first. silent reports that the key had not been
	// renewed for too long when it was read last.
	since  time.Time
	silent bool
}

// alive reports whether somebody has the key, and renews it.
func (k known) alive() bool { return k.Replica != "" && !k.deleted && !k.silent }

// holding is one shard with its goroutine. taken is set once its lease is held.
type holding struct {
	cancel context.CancelCauseFunc
	taken  atomic.Bool
}

// over says that a shard's goroutine has returned: its error is serve's own, and refused is what
// kept it from the lease.
type over struct {
	shard        int
	err, refused error
}

// missing is what keeps this replica from a shard.
type missing struct {
	since  time.Time
	reason string
}

func (r *running) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var aside sync.WaitGroup
	defer aside.Wait()
	aside.Go(func() { r.present(ctx) })
	updates := make(chan jsapi.Update)
	aside.Go(func() {
		cancel(
			jsapi.Watcher{
				Conn:   r.cloud,
				KV:     r.bucket,
				Logger: r.log,
			}.Watch(
				ctx,
				func(u jsapi.Update) {
					select {
					case updates <- u:
					case <-ctx.Done():
					}
				},
			),
		)
	})

	retry, tell := time.NewTicker(retryEvery), time.NewTicker(tellEvery)
	defer retry.Stop()
	defer tell.Stop()
	loaded, done := false, ctx.Done()
	r.readAt = time.Now() // the watch reads it at first
	for done != nil || len(r.mine) > 0 || r.reading {
		select {
		case <-done:
			done = nil // each goroutine ends with ctx
		case ended := <-r.over:
			delete(r.mine, ended.shard)
			if ended.err != nil && ctx.Err() == nil {
				cancel(ended.err)
			}
			if ended.refused != nil {
				r.lack(ended.shard, ended.refused.Error())
				r.stale = r.stale || conflict(ended.refused)
			}
			continue // tried for again after a pause, not at once
		case update := <-updates:
			loaded = (loaded || update.Loaded) && !update.Restarted
			r.take(update)
		case read := <-r.reads:
			r.reading = false
			if read.err != nil {
				if ctx.Err() == nil {
					r.log.Warn("leases cannot be read", "error", read.err)
				}
				continue
			}
			loaded = true
			r.merge(read)
		case <-tell.C:
			r.tell()
			continue
		case <-retry.C:
			r.readWhenDue(ctx, &aside)
		}
		if loaded && ctx.Err() == nil {
			r.divide(ctx)
		}
	}
	return context.Cause(ctx)
}

func (r *running) take(update jsapi.Update) {
	if update.Restarted {
		// What has gone meanwhile is found by reading the bucket afresh. Until then, what was known
		// stays: forgetting who is there would have every replica reach for everything.
		r.stale = true
	}
	if update.Entry == nil {
		return
	}
	r.learn(jsapi.Entry{
		Key: update.Entry.Key(), Revision: update.Entry.Revision(), Value: update.Entry.Value(),
		Deleted: update.Entry.Operation() != jetstream.KeyValuePut,
	})
}

// learn keeps a record unless a newer one is known.
func (r *running) learn(record jsapi.Entry) {
	k := r.entries[record.Key]
	if record.Revision <= k.revision {
		return
	}
	k = known{revision: record.Revision, deleted: record.Deleted, since: time.Now()}
	if !record.Deleted && json.Unmarshal(record.Value, &k.entry) != nil {
		k.Replica = "" // whatever wrote that is no replica
	}
	r.entries[record.Key] = k
}

// reading is the bucket as its leader had it.
type reading struct {
	began   time.Time
	records []jsapi.Entry
	err     error
}

// readWhenDue reads the bucket afresh, aside: as soon as something has shown that what is known is
// wrong, soon while this replica lacks a shard, and otherwise every ten seconds. A watch may miss
// that a key has gone, and a broker that a key's time is over.
func (r *running) readWhenDue(ctx context.Context, aside *sync.WaitGroup) {
	due := readEvery
	switch {
	case r.stale:
		due = 0
	case r.lacks():
		due = readSoon
	}
	if r.reading || ctx.Err() != nil || time.Since(r.readAt) < due {
		return
	}
	r.reading, r.stale, r.readAt = true, false, time.Now()
	began := r.readAt
	aside.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		records, err := jsapi.NewBucket(r.cloud, r.bucket.Bucket()).All(ctx)
		r.reads <- reading{began, records, err}
	})
}

// merge makes entries what was read, but for what was heard of since the reading began. A key that
// had the same revision for long is not renewed: whoever wrote it has let go of what it stands for
// by its own clock, whether the broker has taken the key away or not.
func (r *running) merge(read reading) {
	there := make(map[string]bool, len(read.records))
	for _, record := range read.records {
		there[record.Key] = true
		r.learn(record)
		if k := r.entries[record.Key]; k.revision == record.Revision {
			k.silent = read.began.Sub(k.since) > silence
			r.entries[record.Key] = k
		}
	}
	for key, k := range r.entries {
		if !there[key] && k.since.Before(read.began) {
			delete(r.entries, key)
		}
	}
}

// divide begins to take what should be held, and to hand over what should not.
func (r *running) divide(ctx context.Context) {
	replicas := []string{r.replica}
	for key, k := range r.entries {
		if id, ok := strings.CutPrefix(key, replicaPrefix); ok && id != r.replica && k.alive() {
			replicas = append(replicas, id)
		}
	}
	share := []int{} // also without any it is known
	for shard := range r.shards {
		h := r.mine[shard]
		if holder(shard, replicas) != r.replica {
			delete(r.missing, shard)
			if h != nil {
				h.cancel(ErrHandedOver)
			}
			continue
		}
		share = append(share, shard)
		current := r.entries[shardKey(shard)]
		switch {
		case h != nil && h.taken.Load():
			delete(r.missing, shard)
		case h != nil:
			r.lack(shard, takingIt)
		case current.alive() && current.Replica != r.replica:
			r.lack(shard, "replica "+current.Replica+" holds it")
		default:
			r.lack(shard, takingIt)
			r.hold(ctx, shard, current.revision)
		}
	}
	r.metrics.wanted.Set(float64(len(share)))
	r.mu.Lock()
	r.share = share
	r.mu.Unlock()
}

// lack notes what keeps this replica from a shard that it should have.
func (r *running) lack(shard int, reason string) {
	m := r.missing[shard]
	if m == nil {
		m = &missing{since: time.Now()}
		r.missing[shard] = m
	}
	// What refused the lease says more than that it is tried for again.
	if reason != takingIt || m.reason == "" {
		m.reason = reason
	}
}

// lacks reports whether this replica has lacked a shard for longer than it takes to be handed one.
func (r *running) lacks() bool {
	for _, m := range r.missing {
		if time.Since(m.since) > readSoon {
			return true
		}
	}
	return false
}

// tell logs what keeps this replica from shards that it should have had for a while, a line a
// reason.
func (r *running) tell() {
	shards := map[string][]int{}
	for shard, m := range r.missing {
		if time.Since(m.since) > tellAfter {
			shards[m.reason] = append(shards[m.reason], shard)
		}
	}
	for reason, of := range shards {
		slices.Sort(of)
		r.log.Warn("lease not acquired", "shards", of, "reason", reason)
	}
}

// holder gives the replica that should have a shard: the one whose hash with it is highest.
func holder(shard int, replicas []string) (best string) {
	var highest uint64
	for _, id := range replicas {
		h := fnv.New64a()
		_, _ = h.Write([]byte(id + "/" + strconv.Itoa(shard))) // never fails
		if sum := mix(h.Sum64()); best == "" || sum > highest || sum == highest && id < best {
			best, highest = id, sum
		}
	}
	return best
}

// mix spreads the bits of an FNV hash, whose high ones hardly depend on the last bytes hashed (the
// finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func shardKey(shard int) string { return shardPrefix + strconv.Itoa(shard) }

// present keeps this replica's own key.
func (k *Keeper) present(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		if _, err := k.write(ctx, func(ctx context.Context, value []byte) (uint64, error) {
			return k.bucket.Put(ctx, replicaPrefix+k.replica, value)
		}); err != nil && ctx.Err() == nil {
			k.log.Warn("the replica's key cannot be renewed", "replica", k.replica, "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			k.remove(ctx, replicaPrefix+k.replica)
			return
		}
	}
}

func (k *Keeper) write(
	ctx context.Context, write func(ctx context.Context, value []byte) (uint64, error),
) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	value, err := json.Marshal(entry{k.replica})
	if err != nil {
		return 0, err
	}
	return write(ctx, value)
}

// remove takes a key away, also when ctx has ended, if the broker is there to do it.
func (k *Keeper) remove(ctx context.Context, key string, options ...jetstream.KVDeleteOpt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := nats.ErrDisconnected
	if k.cloud.IsConnected() {
		err = k.bucket.Delete(ctx, key, options...)
	}
	if err != nil {
		k.log.Warn(
			"a lease cannot be given up; it runs out by itself", "key", key,
			"within", streams.LeaseTTL, "error", err,
		)
	}
}
