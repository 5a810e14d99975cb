package commands

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

const (
	// codeDigits is how many digits a code has that the service makes.
	codeDigits = 6
	// orphanAge is after how long a code is removed that the directory does not know: the change was
	// not stored, or another one has come since.
	orphanAge = time.Minute
)

// CodeDirectory keeps what is known of codes (directory.Service).
type CodeDirectory interface {
	Hub(ctx context.Context, hub domain.HubID) (domain.HubState, uint64, error)
	SetCredential(
		ctx context.Context, o domain.Origin, c domain.SetCredential,
	) (domain.Credential, error)
	RevokeCredential(
		ctx context.Context, o domain.Origin, org string, hub domain.HubID, at domain.CredentialSlot,
		version string,
	) error
	ReportCredential(
		ctx context.Context, hub domain.HubID, version, reason, message string,
	) error
}

// Locks are the locks of hubs (Devices).
type Locks interface {
	Slots(
		ctx context.Context, hub domain.HubID, device int64,
	) (protocol.CredentialSlots, error)
	SetCredential(ctx context.Context, hub domain.HubID, params protocol.CredentialParams) error
	RemoveCredential(ctx context.Context, hub domain.HubID, device, slot int64) error
}

// CodesConfig configures Codes. Fields without a default are required.
type CodesConfig struct {
	Directory CodeDirectory `check:"set"`
	Locks     Locks         `check:"set"`
	// Presence returns the presence of a hub; false if it has never connected.
	Presence func(domain.HubID) (domain.Presence, bool) `check:"set"`
	// KV is the bucket of what waits for locks, and Conn a connection to its account.
	KV    jetstream.KeyValue `check:"set"`
	Conn  *nats.Conn         `check:"set"`
	Vault streams.Vault
	// Parts is how many parts the hubs are divided into, each of which has a lease.
	Parts int `check:"positive"`
	// Metrics is where the metrics are registered; nil registers none.
	Metrics prometheus.Registerer
	// Now defaults to time.Now, Logger to slog.Default().
	Now    func() time.Time
	Logger *slog.Logger
}

// Codes sets the codes of locks. The directory has everything about a code but the code itself. That
// is sealed in a bucket, under the version of the change, from before the directory has the change
// until the lock has it. So a hub that is away gets its codes when it is back, and a crash loses
// none: what a hub is sent twice changes nothing. It is safe for concurrent use.
type Codes struct {
	cfg CodesConfig

	mu sync.Mutex
	// waiting is what the bucket has, by version, and changed is closed when it has more.
	waiting map[string]*waitingCode
	changed chan struct{}
	// hubs are those that are being sent codes, or do not answer.
	hubs map[domain.HubID]*codeHub
}

// waitingCode is a change that a lock does not have yet. Its JSON is the bucket's value.
type waitingCode struct {
	HubID domain.HubID `json:"hub_id"`
	At    time.Time    `json:"at"`
	// Sealed is the code; empty for a removal, and for a change that keeps the code.
	Sealed []byte `json:"sealed,omitempty"`

	// next is when it is sent, checked when it is looked at although its hub is away, and failures
	// how often its hub has failed without a reason.
	next, checked time.Time
	failures      int
}

// NewCodes returns Codes. Follow must run for Serve.
func NewCodes(cfg CodesConfig) (*Codes, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Codes{
		cfg: cfg, waiting: map[string]*waitingCode{}, changed: make(chan struct{}),
		hubs: map[domain.HubID]*codeHub{},
	}
	telemetry.NewMetrics(cfg.Metrics, "hubbridge").GaugeFunc("door_codes_waiting", "Door codes and removals of "+
		"codes that locks do not have yet, the same at every replica. Hubs that are away have them to come; a rise "+
		"while all are online means locks that do not answer.", c.countWaiting)
	return c, domain.CheckFields("codes", cfg)
}

// countWaiting returns how many changes wait for a lock.
func (c *Codes) countWaiting() (n float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting {
		if w.HubID != "" { // not a code that Make keeps for repeated requests
			n++
		}
	}
	return n
}

func (c *Codes) bucket() jsapi.Bucket { return jsapi.NewBucket(c.cfg.Conn, c.cfg.KV.Bucket()) }

// MAC returns what stands for a code where requests are compared.
func (c *Codes) MAC(code string) []byte { return c.cfg.Vault.MAC(code) }

// Make returns a new code. For the same id it returns the same one, until a minute has passed.
func (c *Codes) Make(ctx context.Context, id string) (string, error) {
	id = "made." + id
	if code, err := c.code(ctx, id); err != nil || code != "" {
		return code, err
	}
	limit := big.NewInt(1)
	for range codeDigits {
		limit.Mul(limit, big.NewInt(10))
	}
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		return "", err
	}
	code := fmt.Sprintf("%0*d", codeDigits, n)
	return code, c.put(ctx, id, waitingCode{Sealed: c.cfg.Vault.Seal(id, []byte(code))})
}

// askTimeout is how long locks are asked for their own codes. What they do not tell in time, they
// reject later: a lock does not let its own codes be replaced.
const askTimeout = 4 * time.Second

// Set sets a code of a lock, or changes one. An empty code keeps the one that the lock has or waits
// for. Repeated with the same Version it does nothing. Errors are the directory's.
func (c *Codes) Set(
	ctx context.Context, o domain.Origin, set domain.SetCredential, code string,
) (domain.Credential, error) {
	results := c.SetAll(ctx, o, []domain.SetCredential{set}, code)
	return results[0].Credential, results[0].Err
}

// SetAll is Set for one code at several locks. The results are in the same order.
func (c *Codes) SetAll(
	ctx context.Context, o domain.Origin, all []domain.SetCredential, code string,
) []domain.CredentialResult {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	results := make([]domain.CredentialResult, len(all))
	var locks errgroup.Group
	locks.SetLimit(concurrentHubs)
	for i, set := range all {
		locks.Go(func() error {
			results[i].Credential, results[i].Err = c.set(ctx, asking, o, set, code)
			return nil
		})
	}
	_ = locks.Wait() // failures are in the results
	return results
}

func (c *Codes) set(
	ctx, asking context.Context, o domain.Origin, set domain.SetCredential, code string,
) (none domain.Credential, err error) {
	if set.New {
		if slots, err := c.cfg.Locks.Slots(asking, set.HubID, set.DeviceID); err == nil {
			set.Taken = slots.Slots
		}
	} else if code == "" {
		state, _, err := c.cfg.Directory.Hub(ctx, set.HubID)
		if err != nil {
			return none, err
		}
		known := state.Credentials[domain.CredentialSlot{DeviceID: set.DeviceID, Slot: set.Slot}]
		if code, err = c.code(ctx, known.Version); err != nil {
			return none, err
		}
	}
	waiting := waitingCode{HubID: set.HubID}
	if code != "" {
		waiting.Sealed = c.cfg.Vault.Seal(set.Version, []byte(code))
	}
	if err := c.put(ctx, set.Version, waiting); err != nil {
		return none, err
	}
	return c.cfg.Directory.SetCredential(ctx, o, set)
}

// Revoke revokes a code. Errors are the directory's.
func (c *Codes) Revoke(
	ctx context.Context, o domain.Origin, org string, hub domain.HubID, at domain.CredentialSlot,
) error {
	version := rand.Text()
	if err := c.put(ctx, version, waitingCode{HubID: hub}); err != nil {
		return err
	}
	return c.cfg.Directory.RevokeCredential(ctx, o, org, hub, at, version)
}

// Known returns the codes that the service knows of the locks of a hub, or of one device.
func (c *Codes) Known(
	ctx context.Context, org string, hub domain.HubID, device int64,
) ([]domain.Credential, error) {
	state, _, err := c.cfg.Directory.Hub(ctx, hub)
	if err != nil || state.OrgID != org {
		return nil, cmp.Or[error](err, domain.ErrHubNotFound())
	}
	return state.CredentialsOf(device), nil
}

// Slots asks a lock, for a short time, which of its slots have a code.
func (c *Codes) Slots(
	ctx context.Context, hub domain.HubID, device int64,
) (protocol.CredentialSlots, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return c.cfg.Locks.Slots(asking, hub, device)
}

// code returns the code that waits under a version; empty if none does.
func (c *Codes) code(ctx context.Context, version string) (string, error) {
	if version == "" {
		return "", nil
	}
	var w waitingCode
	if _, err := c.bucket().GetJSON(ctx, version, &w); err != nil || len(w.Sealed) == 0 {
		return "", unavailableCodes(err)
	}
	code, err := c.cfg.Vault.Open(version, w.Sealed)
	return string(code), err
}

// put stores what waits under a version, unless something does already.
func (c *Codes) put(ctx context.Context, version string, w waitingCode) error {
	entry, err := c.bucket().Get(ctx, version)
	if err == nil && !entry.Exists() {
		w.At = c.cfg.Now()
		_, err = c.bucket().CompareAndSetJSON(ctx, version, w, entry.Revision)
	}
	return unavailableCodes(err)
}

func unavailableCodes(err error) error {
	return jsapi.Unavailable(err, "door codes cannot be stored at the moment; nothing was changed")
}

// Follow learns of what waits until ctx ends.
func (c *Codes) Follow(ctx context.Context) error {
	watcher := jsapi.Watcher{Conn: c.cfg.Conn, KV: c.cfg.KV, Logger: c.cfg.Logger}
	return watcher.Watch(ctx, func(u jsapi.Update) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if u.Restarted {
			clear(c.waiting)
		}
		if u.Entry == nil {
			return
		}
		delete(c.waiting, u.Entry.Key())
		var w waitingCode
		if u.Entry.Operation() != jetstream.KeyValuePut {
			return
		}
		if err := json.Unmarshal(u.Entry.Value(), &w); err != nil {
			c.cfg.Logger.Error("waiting door code unreadable", "version", u.Entry.Key(), "error", err)
			return
		}
		w.checked = w.At.Add(orphanAge)
		c.waiting[u.Entry.Key()] = &w
		close(c.changed)
		c.changed = make(chan struct{})
	})
}
