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
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/bucket"
	"hubcloud/streams"
)

const (
	// renewEvery leaves two more tries before the holder lets go by itself, and letGo some seconds before the broker takes the key away.
	renewEvery = 3 * time.Second
	letGo      = 7 * time.Second
	// retryEvery is how often a shard that should be held and is not is tried for again, if nothing is heard in between.
	retryEvery = time.Second
	// operationTimeout bounds one operation on the bucket, and removeTimeout giving a key up, for which a process that stops may have no time.
	operationTimeout = 2 * time.Second
	removeTimeout    = time.Second
)

// Why the context of a served shard ends, beside the end of Run.
var (
	// ErrLost says that the lease is lost, or not known to be held any more: the shard may have another holder already, nothing may be written.
	ErrLost = errors.New("the shard's lease is lost")
	// ErrHandedOver says that another replica is to have the shard, and waits for this one to finish.
	ErrHandedOver = errors.New("the shard goes to another replica")
)

// entry is the value of a key: who holds the shard, or whose key it is.
type entry struct {
	Replica string `json:"replica"`
}

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

// NewKeeper makes the keeper of a replica, whose id ([A-Za-z0-9_-]+) stays the same over its restarts and is nobody else's, in the bucket
// streams.Buckets.Leases; cloud is the connection to the bucket's account.
// Its metrics are registered with r, unless that is nil.
func NewKeeper(cloud *nats.Conn, bucket jetstream.KeyValue, replica string, shards int, log *slog.Logger, r prometheus.Registerer) *Keeper {
	return &Keeper{cloud: cloud, bucket: bucket, replica: replica, shards: shards, log: log, metrics: newMetrics(r)}
}

// Share gives the shards that this replica should hold, as far as it knows: nil before it has seen who else is there.
func (k *Keeper) Share() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.share)
}

// Run takes and keeps leases until ctx ends, and calls serve for each shard it holds, each in its own goroutine. serve's context ends with ctx
// or with the lease; its cause says why (ErrLost, ErrHandedOver). serve must then return soon, and the lease is given up when it has; a serve
// that returns before that ends Run with its error. Run returns when every serve has returned.
func (k *Keeper) Run(ctx context.Context, serve func(ctx context.Context, shard int) error) error {
	run := &running{Keeper: k, serve: serve, entries: map[string]known{}, mine: map[int]*holding{}, over: make(chan over)}
	return run.run(ctx)
}

// running is the state of one Run. It belongs to Run's goroutine.
type running struct {
	*Keeper
	serve func(ctx context.Context, shard int) error
	// entries is the bucket.
	entries map[string]known
	// mine holds the shards that are held or being taken.
	mine map[int]*holding
	over chan over
}

type known struct {
	entry
	revision uint64
}

// holding is one shard with its goroutine.
type holding struct{ cancel context.CancelCauseFunc }

// over says that a shard's goroutine has returned.
type over struct {
	shard int
	err   error
}

func (r *running) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var aside sync.WaitGroup
	defer aside.Wait()
	aside.Go(func() { r.present(ctx) })
	updates := make(chan bucket.Update)
	aside.Go(func() {
		cancel(bucket.Watch(ctx, r.cloud, r.bucket, func(u bucket.Update) {
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		}))
	})
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	loaded, done := false, ctx.Done()
	for done != nil || len(r.mine) > 0 {
		select {
		case <-done:
			done = nil // each goroutine ends with ctx
		case ended := <-r.over:
			delete(r.mine, ended.shard)
			if ended.err != nil && ctx.Err() == nil {
				cancel(ended.err)
			}
			continue // tried for again after a pause, not at once
		case update := <-updates:
			loaded = (loaded || update.Loaded) && !update.Again
			r.take(update)
		case <-retry.C:
		}
		if loaded && ctx.Err() == nil {
			r.divide(ctx)
		}
	}
	return context.Cause(ctx)
}

func (r *running) take(update bucket.Update) {
	if update.Again {
		clear(r.entries)
	}
	if update.Entry == nil {
		return
	}
	var e entry
	if update.Entry.Operation() != jetstream.KeyValuePut || json.Unmarshal(update.Entry.Value(), &e) != nil {
		delete(r.entries, update.Entry.Key())
		return
	}
	r.entries[update.Entry.Key()] = known{e, update.Entry.Revision()}
}

// divide begins to take what should be held, and to hand over what should not.
func (r *running) divide(ctx context.Context) {
	replicas := []string{r.replica}
	for key := range r.entries {
		if id, ok := strings.CutPrefix(key, replicaPrefix); ok && id != r.replica {
			replicas = append(replicas, id)
		}
	}
	share := []int{} // also without any it is known
	for shard := range r.shards {
		h := r.mine[shard]
		if holder(shard, replicas) != r.replica {
			if h != nil {
				h.cancel(ErrHandedOver)
			}
			continue
		}
		share = append(share, shard)
		current, taken := r.entries[shardKey(shard)]
		if h == nil && (!taken || current.Replica == r.replica) {
			r.hold(ctx, shard, current.revision)
		}
	}
	r.metrics.wanted.Set(float64(len(share)))
	r.mu.Lock()
	r.share = share
	r.mu.Unlock()
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

// mix spreads the bits of an FNV hash, whose high ones hardly depend on the last bytes hashed (the finalizer of MurmurHash3).
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

func (k *Keeper) write(ctx context.Context, write func(ctx context.Context, value []byte) (uint64, error)) (uint64, error) {
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
		k.log.Warn("a lease cannot be given up; it runs out by itself", "key", key, "within", streams.LeaseTTL, "error", err)
	}
}
