package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

// times are the intervals of a keeper.
type times struct {
	// renewEvery leaves a holder time for another try before holdFor is over.
	renewEvery time.Duration
	// holdFor is how long a lease is certainly held after its last renewal: less than silentAfter,
	// since clocks differ.
	holdFor time.Duration
	// readEvery is how often the bucket is read from its leader, and readSoon how often while this
	// replica lacks a group of its share.
	readEvery, readSoon time.Duration
	// silentAfter is the time without a renewal after which the replica of a key counts as gone, if
	// this replica could renew its own key for the last writableFor: others had the time to do so.
	silentAfter, writableFor time.Duration
}

const (
	// operationTimeout bounds one operation on the bucket. removeTimeout bounds the deletion of a
	// key, for which a process that stops may have no time.
	operationTimeout = time.Second
	removeTimeout    = time.Second
	// renewAgain is the pause after a renewal that failed.
	renewAgain = 250 * time.Millisecond
)

// The causes that end the context of a served group, beside the end of Run.
var (
	// ErrLost reports that the lease is lost, or is no longer known to be held. Another replica may
	// hold the group already: nothing may be written.
	ErrLost = errors.New("the group's lease is lost")
	// ErrHandedOver reports that the group is now in another replica's share. That replica waits
	// until this one has released the lease.
	ErrHandedOver = errors.New("the group goes to another replica")
)

// keyValue is the value of every key. It names the replica that wrote the key.
type keyValue struct {
	Replica string `json:"replica"`
}

const (
	groupPrefix   = "group."
	replicaPrefix = "replica."
)

// groupKey returns the key of a group's lease.
func groupKey(group int) string { return groupPrefix + strconv.Itoa(group) }

// Config configures a Keeper. Conn, Bucket, ReplicaID and Groups are required.
type Config struct {
	// Conn is the connection to the bucket's account.
	Conn *nats.Conn `check:"set"`
	// Bucket is streams.Buckets.Leases.
	Bucket jetstream.KeyValue `check:"set"`
	// ReplicaID ([A-Za-z0-9_-]+) names this replica. It stays the same over restarts, and no other
	// replica has it.
	ReplicaID string `check:"set"`
	// Groups is the number of groups.
	Groups int `check:"positive"`
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics is where the keeper's metrics are registered; nil registers nothing.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy of c with the defaults for zero fields.
func (c Config) WithDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Keeper holds the leases of one replica.
type Keeper struct {
	conn    *nats.Conn
	bucket  jetstream.KeyValue
	replica string
	groups  int
	logger  *slog.Logger
	metrics *metrics
	times   times

	mu    sync.Mutex
	share []int
	// writableSince is when the first of this replica's renewals of its own key began since which
	// none has failed; the zero time after one that has.
	writableSince time.Time
}

// NewKeeper returns a keeper. The error is cfg.Validate's.
func NewKeeper(cfg Config) (*Keeper, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("lease", cfg); err != nil {
		return nil, err
	}
	return &Keeper{
		conn:    cfg.Conn,
		bucket:  cfg.Bucket,
		replica: cfg.ReplicaID,
		groups:  cfg.Groups,
		logger:  cfg.Logger,
		metrics: newMetrics(cfg.Metrics),
		times: times{
			renewEvery: time.Second, holdFor: 3 * time.Second,
			readEvery: 10 * time.Second, readSoon: 3 * time.Second,
			silentAfter: 4 * time.Second, writableFor: 2 * time.Second,
		},
	}, nil
}

// Share returns the groups that this replica should hold. It is nil until the replica has read the
// keys of the others.
func (k *Keeper) Share() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.share)
}

// Run acquires and renews leases until ctx ends. It calls serve for each group that it holds, each
// in a goroutine of its own, and returns when every serve has returned.
//
// The context of serve ends with ctx or with the lease; its cause is then ErrLost or ErrHandedOver.
// serve must return soon after, and its lease is released once it has. A serve that returns earlier
// ends Run with its error.
//
// held reports whether the lease is still held, by the clock of this process. It returns false from
// the moment at which another replica may acquire the lease. In a process that was suspended, that
// can be before the context of serve has ended.
func (k *Keeper) Run(
	ctx context.Context, serve func(ctx context.Context, group int, held func() bool) error,
) error {
	return k.newLoop(func(ctx context.Context, group int, term *Term) error {
		return serve(ctx, group, term.Held)
	}).run(ctx)
}

// RunFenced is Run for a serve that needs no lease to be safe, because something else ends what a
// former holder does: the lease is not lost before another replica is known to have taken it, or
// until serve returns ErrLost. So groups are served on while the bucket cannot be written.
func (k *Keeper) RunFenced(
	ctx context.Context, serve func(ctx context.Context, group int, term *Term) error,
) error {
	l := k.newLoop(serve)
	l.fenced = true
	return l.run(ctx)
}

func (k *Keeper) newLoop(
	serve func(ctx context.Context, group int, term *Term) error,
) *loop {
	return &loop{
		Keeper: k,
		serve:  serve,
		keys:   map[string]knownKey{}, tenures: map[int]*tenure{},
		ended:   make(chan tenureEnd),
		reads:   make(chan bucketRead),
		missing: map[int]*missing{},
	}
}

// keepReplicaKey renews this replica's own key until ctx ends, then deletes it.
func (k *Keeper) keepReplicaKey(ctx context.Context) {
	ticker := time.NewTicker(k.times.renewEvery)
	defer ticker.Stop()
	for warned := false; ; {
		began := time.Now()
		_, err := k.write(ctx, func(ctx context.Context, value []byte) (uint64, error) {
			return k.bucket.Put(ctx, replicaPrefix+k.replica, value)
		})
		k.noteWritable(began, err == nil)
		if err == nil {
			warned = false
			ticker.Reset(k.times.renewEvery)
		} else if ctx.Err() == nil {
			ticker.Reset(renewAgain)
			if !warned {
				k.logger.Warn("replica key not renewed", "replica", k.replica, "error", err)
			}
			warned = true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			k.remove(ctx, replicaPrefix+k.replica)
			return
		}
	}
}

// noteWritable notes whether a renewal of the own key that began at a time was stored.
func (k *Keeper) noteWritable(began time.Time, stored bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !stored:
		k.writableSince = time.Time{}
	case k.writableSince.IsZero():
		k.writableSince = began
	}
}

// writable reports whether the bucket could be written for writableFor until a time.
func (k *Keeper) writable(until time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.writableSince.IsZero() && until.Sub(k.writableSince) >= k.times.writableFor
}

// write calls put with the value of this replica's keys and a context of limited time.
func (k *Keeper) write(
	ctx context.Context, put func(ctx context.Context, value []byte) (uint64, error),
) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	value, err := json.Marshal(keyValue{k.replica})
	if err != nil {
		return 0, err
	}
	return put(ctx, value)
}

// remove deletes a key, even if ctx has ended. It does not wait for a broker that is disconnected.
func (k *Keeper) remove(ctx context.Context, key string, options ...jetstream.KVDeleteOpt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := nats.ErrDisconnected
	if k.conn.IsConnected() {
		err = k.bucket.Delete(ctx, key, options...)
	}
	if err != nil {
		k.logger.Warn(
			"lease not released; others take it", "key", key, "after", k.times.silentAfter,
			"error", err,
		)
	}
}
