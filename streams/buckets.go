package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// Lives of keys that keep themselves alive.
const (
	// LeaseTTL is how long a lease stays in its bucket after it was last renewed. Its holder renews
	// it well before; after a crash the next holder waits at most this long.
	LeaseTTL = 10 * time.Second
	// HeartbeatTTL is how long a replica counts as alive after its last heartbeat.
	HeartbeatTTL = 10 * time.Second
	// SignInTTL is how long anything stays in the bucket of the portal's sessions.
	SignInTTL = 30 * 24 * time.Hour
	// markerTTL is how long the delete marker of an expired lease stays for watchers.
	markerTTL = time.Minute
)

// DefaultIdempotencyWindow is how long a new bucket keeps the answers to commands: as the contract
// promises.
const DefaultIdempotencyWindow = 24 * time.Hour

// PresenceBucket names the bucket of hubs' presence.
const PresenceBucket = "presence"

const (
	// BucketReplicas names the bucket of the replicas' heartbeats, which replicas.Barrier opens.
	BucketReplicas    = "replicas"
	bucketIdempotency = "idempotency"
)

// Buckets holds the key-value buckets, all in the account CLOUD, in files, with the last value of
// each key only.
type Buckets struct {
	// Presence holds a domain.Presence a hub, under the hub's id.
	Presence jetstream.KeyValue
	// Ledger holds what the bridge knows of each hub's own log, under the hub's id.
	Ledger jetstream.KeyValue
	// Leases holds which replica serves which shard.
	Leases jetstream.KeyValue
	// Replicas holds a heartbeat of each replica that Barrier.Wait waits for, under the replica's
	// id.
	Replicas jetstream.KeyValue
	// Installation holds the settings that are fixed when an installation is made, and the password
	// hashes of taps.
	Installation jetstream.KeyValue
	// Idempotency holds the outcome of each command with an idempotency key, for the window that
	// SetIdempotencyWindow sets.
	Idempotency jetstream.KeyValue
	// SignIn holds the portal's sessions and the links that begin them, under the hashes of their
	// tokens.
	SignIn jetstream.KeyValue
	// KeyUse holds when each API key was used last, under the key's id.
	KeyUse jetstream.KeyValue
}

// bucketDeclaration declares a bucket.
type bucketDeclaration struct {
	into *jetstream.KeyValue
	jetstream.KeyValueConfig
	// adjustable reports that the TTL is a setting: an existing bucket may have another one.
	adjustable bool
}

// bucketDeclarations declares the buckets. None has a limit of size: one value a hub or a replica,
// and losing any of them loses truth.
func bucketDeclarations(b *Buckets) []bucketDeclaration {
	return []bucketDeclaration{
		// For ever: the status of a hub that has been away for a year is still known, and its log's
		// number is not forgotten.
		{
			into: &b.Presence,
			KeyValueConfig: jetstream.KeyValueConfig{
				Bucket:      PresenceBucket,
				Description: "whether each hub is connected",
			},
		},
		{
			into: &b.Ledger,
			KeyValueConfig: jetstream.KeyValueConfig{
				Bucket:      "ledger",
				Description: "how far each hub's own log is stored",
			},
		},
		// A lease that is not renewed expires by itself, and its marker reaches watchers at once.
		{into: &b.Leases, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: "leases", Description: "which replica looks after which shard", TTL: LeaseTTL,
			LimitMarkerTTL: markerTTL,
		}},
		// A heartbeat expires likewise. It is not watched, so it leaves no marker.
		{into: &b.Replicas, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: BucketReplicas, Description: "which replicas are alive", TTL: HeartbeatTTL,
		}},
		{into: &b.Installation, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: "installation", Description: "what was settled when the installation was made",
		}},
		{into: &b.Idempotency, adjustable: true, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket:      bucketIdempotency,
			Description: "what became of commands with an idempotency key",
			TTL:         DefaultIdempotencyWindow,
		}},
		// Each value brings its own life, none a longer one than a session's; what was ended leaves
		// a mark for a moment.
		{into: &b.SignIn, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: "sign-in", Description: "who is signed in to the portal, and links to sign in",
			TTL: SignInTTL, LimitMarkerTTL: markerTTL,
		}},
		{
			into: &b.KeyUse,
			KeyValueConfig: jetstream.KeyValueConfig{
				Bucket:      "key-use",
				Description: "when each API key was used last",
			},
		},
	}
}

// OpenBuckets opens the buckets, makes missing ones, and changes the number of replicas (1, 3 or 5;
// 0 keeps their number, or makes one). A bucket with other properties is ErrIncompatible.
func OpenBuckets(ctx context.Context, conns *Conns, replicas int) (*Buckets, error) {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, fmt.Errorf("open buckets: %w", err)
	}
	b := &Buckets{}
	for _, declared := range bucketDeclarations(b) {
		declared.History, declared.Storage, declared.Replicas = 1, jetstream.FileStorage, replicas
		err := jsapi.SetUp(ctx, func(ctx context.Context) (err error) {
			*declared.into, err = openBucket(ctx, js, declared)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("open bucket %s: %w", declared.Bucket, err)
		}
	}
	return b, nil
}

func openBucket(
	ctx context.Context, js jetstream.JetStream, declared bucketDeclaration,
) (jetstream.KeyValue, error) {
	kv, err := js.KeyValue(ctx, declared.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, declared.KeyValueConfig)
	}
	if err != nil {
		return nil, err
	}
	got, err := js.Stream(ctx, jsapi.BucketStream(declared.Bucket))
	if err != nil {
		return nil, err
	}
	config := got.CachedInfo().Config
	if declared.adjustable {
		declared.TTL = config.MaxAge
	}
	if err := checkDeclared(bucketStream(declared.KeyValueConfig), config); err != nil {
		return nil, err
	}
	if declared.Replicas > 0 && config.Replicas != declared.Replicas {
		return js.UpdateKeyValue(ctx, declared.KeyValueConfig)
	}
	return kv, nil
}

// SetIdempotencyWindow sets how long the broker keeps each entry of Idempotency after it was
// written, existing ones among them; at least 100 ms.
func (b *Buckets) SetIdempotencyWindow(
	ctx context.Context, conns *Conns, window time.Duration,
) error {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return fmt.Errorf("set the idempotency window: %w", err)
	}
	if err := jsapi.SetUp(ctx, func(ctx context.Context) error { return setIdempotencyWindow(ctx, js, window) }); err != nil {
		return fmt.Errorf("set the idempotency window to %v: %w", window, err)
	}
	return nil
}

func setIdempotencyWindow(ctx context.Context, js jetstream.JetStream, window time.Duration) error {
	stream, err := js.Stream(ctx, jsapi.BucketStream(bucketIdempotency))
	if err != nil {
		return err
	}
	config := stream.CachedInfo().Config
	if config.MaxAge == window {
		return nil
	}
	// The broker refuses to look for repeats for longer than it keeps anything. Nothing here relies
	// on that.
	config.MaxAge, config.Duplicates = window, min(window, config.Duplicates)
	_, err = js.UpdateStream(ctx, config)
	return err
}

// BucketStreams names the streams of all buckets.
func BucketStreams() []string {
	var names []string
	for _, declared := range bucketDeclarations(&Buckets{}) {
		names = append(names, jsapi.BucketStream(declared.Bucket))
	}
	return names
}

// bucketStream is the stream that a bucket is kept in, as far as it is compared.
func bucketStream(c jetstream.KeyValueConfig) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Subjects:               []string{jsapi.BucketSubject(c.Bucket, ">")},
		MaxAge:                 c.TTL,
		MaxMsgsPerSubject:      int64(c.History),
		Storage:                c.Storage,
		Discard:                jetstream.DiscardNew,
		DenyDelete:             true,
		AllowRollup:            true,
		AllowDirect:            true,
		AllowMsgTTL:            c.LimitMarkerTTL > 0,
		SubjectDeleteMarkerTTL: c.LimitMarkerTTL,
	}
}
