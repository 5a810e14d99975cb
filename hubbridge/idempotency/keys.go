package idempotency

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
	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/hubbridge/bucket"
	"hubcloud/streams"
)

// BucketName is the name of the bucket of reservations.
const BucketName = "idempotency"

// DefaultMaxPerOrg is how many keys an organization may have within the window.
const DefaultMaxPerOrg = 500_000

const (
	// firstLook and lastLook bound how often a reservation that another replica holds is looked at;
	// the pause doubles in between.
	firstLook = 10 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	// presenceTime is how long a process may take to say that it is there.
	presenceTime = 500 * time.Millisecond
	// maxUnsure is how often a write is tried whose answer was lost.
	maxUnsure = 3
	// patience bounds the wait for a leader of the bucket.
	patience = 15 * time.Second
)

// Config configures Keys. ReplicaID is required.
type Config struct {
	// ReplicaID ([A-Za-z0-9_-]+) names this replica in reservations; no other replica has it.
	ReplicaID string
	// Window is how long a key stands for its request. Defaults to 24 h. The bucket must keep what
	// is written at least as long.
	Window time.Duration
	// MaxPerOrg is how many keys an organization may have within the window. Defaults to
	// DefaultMaxPerOrg.
	MaxPerOrg int
	// Now is the clock. Defaults to time.Now. The clocks of replicas must agree to some seconds.
	Now func() time.Time
	// Log is the logger. Defaults to slog.Default.
	Log *slog.Logger
}

// Keys reserves idempotency keys. Safe for concurrent use.
type Keys struct {
	cfg      Config
	cloud    *nats.Conn
	reserved bucket.Bucket
	// process names this process, and presence answers whoever asks whether it is there.
	process  string
	presence *nats.Subscription

	mu      sync.Mutex
	running map[string]chan struct{} // closed when the request under that name is over
	counts  map[string]*count        // by organization
}

// New returns Keys in the bucket of the account that conns.Cloud is connected to. The caller ends
// them with Close before it closes the connections.
func New(conns *streams.Conns, cfg Config) *Keys {
	cfg.Window = cmp.Or(cfg.Window, streams.DefaultIdempotencyWindow)
	cfg.MaxPerOrg = cmp.Or(cfg.MaxPerOrg, DefaultMaxPerOrg)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	k := &Keys{
		cfg: cfg, cloud: conns.Cloud, reserved: bucket.New(conns.Cloud, BucketName),
		process: cfg.ReplicaID + "." + rand.Text(),
		running: map[string]chan struct{}{}, counts: map[string]*count{},
	}
	var err error
	// Without the subscription, or without the answer, other processes take over what this one
	// holds: that does no harm.
	k.presence, err = k.cloud.Subscribe(
		streams.CommandsSubject(k.process), func(msg *nats.Msg) { _ = msg.Respond(nil) },
	)
	if err != nil {
		k.cfg.Log.Warn("other processes cannot see that this one is there", "error", err)
	}
	return k
}

// Close ends the answers to other processes.
func (k *Keys) Close() {
	if k.presence != nil {
		// fails only when the connection is gone, and the subscription with it
		_ = k.presence.Unsubscribe()
	}
}

// Name returns the name of the reservation of an organization's key, and "" for the empty key. It
// is short, because the broker keeps all of them in memory.
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

// Request is a request with an idempotency key.
type Request struct {
	OrgID string
	// Name is that of the reservation, and Fingerprint tells requests apart.
	Name, Fingerprint string
	// Hold is how long the request may take; then another process may take over.
	Hold time.Duration
	// Check, when not nil, is asked before a key is reserved that has no answer; its error is the
	// request's.
	Check func(ctx context.Context) error
}

// Reserve reserves a key for a request, and returns the reservation, held by the caller or with the
// answer that there is already. Errors are idempotency_conflict, rate_limited for an organization
// with too many keys, service_unavailable when the bucket has no leader for 15 s, those of q.Check,
// and ctx's.
func (k *Keys) Reserve(ctx context.Context, q Request) (*Reservation, error) {
	flight := ulid.Make().String()
	r := &Reservation{name: q.Name}
	unsure, pause := 0, firstLook
	until := time.Now().Add(patience) // the bucket's leader has to answer by then
	// Most keys are new: the first time round nothing is read, and the write shows whether there is
	// something.
	for first := true; ; first = false {
		if !first {
			*r = Reservation{name: q.Name}
			asking, cancel := context.WithDeadline(ctx, until)
			var err error
			r.revision, err = k.reserved.Get(asking, q.Name, r)
			cancel()
			switch {
			case err == nil:
				until = time.Now().Add(patience)
			case errors.Is(err, streams.ErrNoStream) && time.Now().Before(until):
				if err := sleep(ctx, pause); err != nil {
					return nil, err
				}
				pause = min(2*pause, lastLook)
				continue
			default:
				return nil, unavailable(err)
			}
		}
		now := k.cfg.Now()
		switch {
		case r.revision > 0 && r.Flight == flight:
			return r, nil // the answer to the write was lost
		case r.revision == 0 || now.Sub(r.ReservedAt) >= k.cfg.Window:
			r.ID, r.Request, r.ReservedAt, r.Answer = ulid.Make().String(), q.Fingerprint, now, nil
		case r.Request != q.Fingerprint:
			return nil, domain.Errorf(
				domain.CodeIdempotencyConflict,
				"Idempotency-Key: stands for another request; use a new key for this one",
			)
		case len(r.Answer) > 0:
			return r, nil
		case now.Before(r.Deadline) && k.others(ctx, r.Process):
			if err := sleep(ctx, min(pause, r.Deadline.Sub(now))); err != nil {
				return nil, err
			}
			pause = min(2*pause, lastLook)
			continue
		}
		if q.Check != nil {
			if err := q.Check(ctx); err != nil {
				if first {
					continue // there may be an answer
				}
				return nil, err
			}
		}
		isNew := r.revision == 0
		if isNew && !first {
			if err := k.admit(ctx, q.OrgID); err != nil {
				return nil, err
			}
		} else if isNew && !k.admitted(q.OrgID) {
			continue // there may be an answer
		}
		r.Process, r.Flight, r.Deadline = k.process, flight, now.Add(q.Hold)
		revision, err := k.reserved.Put(ctx, q.Name, r, r.revision)
		switch {
		case err == nil:
			if isNew {
				k.counted(q.OrgID)
			}
			r.revision = revision
			return r, nil
		case errors.Is(err, streams.ErrConflict):
		case errors.Is(err, streams.ErrUnsure) && unsure < maxUnsure && time.Now().Before(until):
			unsure++
		case errors.Is(err, streams.ErrNoStream):
			// No leader at the moment: nothing was stored. The next read waits for one.
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
			pause = min(2*pause, lastLook)
		default:
			return nil, unavailable(err)
		}
	}
}

// unavailable returns service_unavailable for a bucket that does not answer, and any other error as
// it is. Nothing was done yet: what is done comes after the reservation.
func unavailable(err error) error {
	return streams.Unavailable(
		err, "idempotency keys cannot be stored at the moment; nothing was done",
	)
}

// others reports whether a holder is another process that is still there. A process that is gone
// leaves the broker at once, unless its machine or its network went first: then the deadline ends
// the wait. What this process itself holds and is not at any more, it could not let go of.
func (k *Keys) others(ctx context.Context, process string) bool {
	if process == k.process {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTime)
	defer cancel()
	_, err := k.cloud.RequestWithContext(ctx, streams.CommandsSubject(process), nil)
	return !errors.Is(err, nats.ErrNoResponders)
}

// Settle writes what became of a reservation that the caller holds: the answer that settled the
// matter, or, when that is empty, that nobody holds it now. It returns the answer of another holder
// that has taken over and got one, otherwise nothing. The error says that the answer could not be
// stored; ctx bounds how long that is tried.
func (k *Keys) Settle(
	ctx context.Context, r *Reservation, answer []byte,
) (first []byte, err error) {
	mine := *r
	mine.Answer, mine.Process, mine.Flight, mine.Deadline = answer, "", "", time.Time{}
	revision, pause := r.revision, firstLook
	for {
		_, err := k.reserved.Put(ctx, r.name, &mine, revision)
		switch {
		case err == nil:
			return nil, nil
		case errors.Is(err, streams.ErrConflict), errors.Is(err, streams.ErrUnsure):
		case !errors.Is(err, streams.ErrNoStream):
			return nil, err
		}
		if !errors.Is(err, streams.ErrConflict) {
			if sleep(ctx, pause) != nil {
				return nil, err
			}
			pause = min(2*pause, lastLook)
		}
		there := Reservation{}
		if revision, err = k.reserved.Get(ctx, r.name, &there); err != nil {
			return nil, err
		}
		switch {
		case revision == 0 || there.ID != r.ID:
			return nil, nil // its time is over
		case len(there.Answer) > 0:
			return there.Answer, nil
		case len(answer) == 0 && there.Flight != r.Flight:
			return nil, nil // somebody else holds it, or has let go of it
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
