package once

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/shares"
)

// BucketName is the name of the bucket of reservations.
const BucketName = "idempotency"

// DefaultMaxPerOrg is the default bound of the keys of an organization within the window.
const DefaultMaxPerOrg = 500_000

// DefaultMaxBytesPerOrg is the default bound of the bytes of an organization's answers within the
// window: twice what DefaultMaxPerOrg commands have.
const DefaultMaxBytesPerOrg = 512 << 20

// livenessTimeout is how long a process may take to answer that it still runs.
const livenessTimeout = 500 * time.Millisecond

// Config configures Keys. ReplicaID is required.
type Config struct {
	// ReplicaID ([A-Za-z0-9_-]+) names this replica in reservations. No other replica may have it.
	ReplicaID string `check:"set"`
	// Window is how long a key stands for its request. Defaults to 24 h. The bucket must keep its
	// records at least as long.
	Window time.Duration `check:"at least 0"`
	// MaxPerOrg bounds the keys of an organization within the window. Defaults to
	// DefaultMaxPerOrg.
	MaxPerOrg int `check:"at least 0"`
	// MaxBytesPerOrg bounds the bytes of an organization's answers that this replica stores within
	// the window. Defaults to DefaultMaxBytesPerOrg.
	MaxBytesPerOrg int `check:"at least 0"`
	// Shares reports MaxBytesPerOrg; nil reports nothing.
	Shares *shares.Registry
	// Now is the clock. Defaults to time.Now. The clocks of replicas must agree to some seconds.
	Now func() time.Time
	// Logger gets faults of storage. Defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy of c with the defaults for zero fields.
func (c Config) WithDefaults() Config {
	c.Window = cmp.Or(c.Window, streams.DefaultIdempotencyWindow)
	c.MaxPerOrg = cmp.Or(c.MaxPerOrg, DefaultMaxPerOrg)
	c.MaxBytesPerOrg = cmp.Or(c.MaxBytesPerOrg, DefaultMaxBytesPerOrg)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Keys reserves idempotency keys. It is safe for concurrent use.
type Keys struct {
	cfg      Config
	cloud    *nats.Conn
	reserved jsapi.Bucket
	// process names this process in reservations, and liveness answers other processes that it
	// still runs.
	process  string
	liveness *nats.Subscription
	// recent has the keys that are worth a read before they are written.
	recent *recentNames

	mu      sync.Mutex
	running map[string]chan struct{} // by name; closed when the request under the name has ended
	counts  map[string]*count        // by organization
	// bytes are those of answers, by organization.
	bytes *shares.Rate[string]
}

// New returns Keys in the bucket of the account that conns.Cloud is connected to. The caller must
// call Close before it closes the connections. The error is cfg.Validate's.
func New(conns *streams.Conns, cfg Config) (*Keys, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("once", cfg); err != nil {
		return nil, err
	}
	k := &Keys{
		cfg: cfg, cloud: conns.Cloud, reserved: jsapi.NewBucket(conns.Cloud, BucketName),
		process: cfg.ReplicaID + "." + rand.Text(), recent: newRecentNames(),
		running: map[string]chan struct{}{}, counts: map[string]*count{},
		bytes: shares.NewRate[string](cfg.Shares, shares.RateConfig{
			Name:      "bytes_of_idempotency_keys",
			PerSecond: float64(cfg.MaxBytesPerOrg) / cfg.Window.Seconds(), Burst: cfg.MaxBytesPerOrg,
		}, cfg.Now()),
	}
	var err error
	k.liveness, err = k.cloud.Subscribe(
		streams.LivenessSubject(k.process), func(msg *nats.Msg) { _ = msg.Respond(nil) },
	)
	if err != nil {
		// Without answers, other processes take over what this process holds, which does no harm.
		k.cfg.Logger.Warn("liveness not answered to other processes", "error", err)
	}
	return k, nil
}

// Close ends the answers to other processes.
func (k *Keys) Close() {
	if k.liveness != nil {
		streams.Unsubscribe(k.liveness)
	}
}

// heldElsewhere reports whether process is another process that still runs. A process that is gone
// leaves the broker at once, unless its machine or network failed first; then the deadline of its
// reservation ends the wait. A reservation of this process that no call holds is one that could not
// be released.
func (k *Keys) heldElsewhere(ctx context.Context, process string) bool {
	if process == k.process {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, livenessTimeout)
	defer cancel()
	_, err := k.cloud.RequestWithContext(ctx, streams.LivenessSubject(process), nil)
	return !errors.Is(err, nats.ErrNoResponders)
}

// Name returns the name of the reservation of an organization's key; "" for the empty key. Names
// are short because the broker keeps all of them in memory.
func Name(org, key string) string {
	if key == "" {
		return ""
	}
	return org + "." + digest([]byte(key))
}

// Fingerprint returns a short text that is the same for the same request.
func Fingerprint(request []byte) string { return digest(request) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
