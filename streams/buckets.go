package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// Lifetimes of keys.
const (
	// LeaseTTL is how long a key of a lease is kept after its last renewal: longer than a cluster
	// takes to elect leaders. Whoever wants the lease does not wait for that (package lease).
	LeaseTTL = 30 * time.Second
	// HeartbeatTTL is how long a replica counts as alive after its last heartbeat.
	HeartbeatTTL = 10 * time.Second
	// SignInTTL is the longest lifetime of an entry of the bucket SignIn.
	SignInTTL = 30 * 24 * time.Hour
	// FeedReadersTTL is how long an organization's readers of events are kept after the last
	// change.
	FeedReadersTTL = 8 * 24 * time.Hour
	// markerTTL is how long the delete marker of an expired key is kept for watchers.
	markerTTL = time.Minute
)

// DefaultIdempotencyWindow is how long a new bucket keeps the outcomes of commands, as the contract
// promises.
const DefaultIdempotencyWindow = 24 * time.Hour

// PresenceBucket is the name of the bucket of hubs' presence.
const PresenceBucket = "presence"

const (
	// InstallationBucket is the name of the bucket of what is fixed or recorded for the whole
	// installation.
	InstallationBucket = "installation"
	// BucketReplicas is the name of the bucket of the replicas' heartbeats.
	BucketReplicas = "replicas"
	// AlarmMailsBucket is the name of the bucket of what was mailed about conditions.
	AlarmMailsBucket = "alarm-mails"
	// WebhooksBucket is the name of the bucket of how far the deliveries of webhooks have come.
	WebhooksBucket = "webhooks"
	// CodesBucket is the name of the bucket of the door codes that wait for their locks.
	CodesBucket       = "door-codes"
	bucketIdempotency = "idempotency"
)

// Buckets are the key-value buckets. All are in the account CLOUD, on disk, and keep the last value
// of each key.
type Buckets struct {
	// Presence has the domain.Presence of each hub, by hub id.
	Presence jetstream.KeyValue
	// Checkpoints has the ingest checkpoint of each hub, by hub id.
	Checkpoints jetstream.KeyValue
	// Leases has the replica that serves each shard.
	Leases jetstream.KeyValue
	// Replicas has the heartbeat of each replica that replicas.Barrier waits for, by replica id.
	Replicas jetstream.KeyValue
	// Installation has the settings that are fixed when an installation is created, and the
	// password hashes of taps.
	Installation jetstream.KeyValue
	// Idempotency has the outcome of each command with an idempotency key. SetIdempotencyWindow
	// sets for how long.
	Idempotency jetstream.KeyValue
	// SignIn has the portal's sessions and sign-in links, by the hashes of their tokens.
	SignIn jetstream.KeyValue
	// KeyUse has the time of the last use of each API key, by key id.
	KeyUse jetstream.KeyValue
	// AlarmMails has what was mailed about conditions, by organization, and the key of the links
	// that end these mails. Package outbox reads and writes it.
	AlarmMails jetstream.KeyValue
	// FeedReaders has the readers of events that name themselves, by organization.
	FeedReaders jetstream.KeyValue
	// Webhooks has the domain.WebhookProgress of each webhook, by its id.
	Webhooks jetstream.KeyValue
	// WebhookLeases has the replica that delivers for each part of the webhooks.
	WebhookLeases jetstream.KeyValue
	// Codes has what locks are to be told about their codes, sealed, by version.
	Codes jetstream.KeyValue
}

// bucketDeclaration declares a bucket.
type bucketDeclaration struct {
	into *jetstream.KeyValue
	jetstream.KeyValueConfig
	// adjustable reports that an existing bucket may have another TTL, since it is a setting.
	adjustable bool
}

// bucketDeclarations returns the declarations of all buckets. None has a limit of size: each has at
// most one small value a hub, replica, key, command or session, and none of them may be lost.
func bucketDeclarations(b *Buckets) []bucketDeclaration {
	return []bucketDeclaration{
		// Presence and checkpoints have no TTL: a hub may return after a year.
		{
			into: &b.Presence,
			KeyValueConfig: jetstream.KeyValueConfig{
				Bucket:      PresenceBucket,
				Description: "whether each hub is connected",
			},
		},
		{
			into: &b.Checkpoints,
			KeyValueConfig: jetstream.KeyValueConfig{
				Bucket:      "checkpoints",
				Description: "how far each hub's own log is stored",
			},
		},
		// Watchers learn of an expired lease from its delete marker.
		{into: &b.Leases, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: "leases", Description: "which replica serves which group of shards", TTL: LeaseTTL,
			LimitMarkerTTL: markerTTL,
		}},
		// Heartbeats are not watched, so they need no markers.
		{into: &b.Replicas, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: BucketReplicas, Description: "which replicas are alive", TTL: HeartbeatTTL,
		}},
		{into: &b.Installation, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: InstallationBucket, Description: "what was decided when the installation was made",
		}},
		{into: &b.Idempotency, adjustable: true, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket:      bucketIdempotency,
			Description: "what became of commands with an idempotency key",
			TTL:         DefaultIdempotencyWindow,
		}},
		// Each entry has a TTL of its own, at most a session's.
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
		{
			into: &b.AlarmMails,
			KeyValueConfig: jetstream.KeyValueConfig{
				Bucket:      AlarmMailsBucket,
				Description: "what was mailed about conditions that need attention",
			},
		},
		// Package orgfeed drops readers after seven days, and writes what is left.
		{into: &b.FeedReaders, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: "feed-readers", Description: "how far each named reader of events has read",
			TTL: FeedReadersTTL,
		}},
		{into: &b.Webhooks, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: WebhooksBucket, Description: "how far the deliveries of each webhook have come",
		}},
		{into: &b.WebhookLeases, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: "webhook-leases", Description: "which replica delivers for each part of the webhooks",
			TTL: LeaseTTL, LimitMarkerTTL: markerTTL,
		}},
		{into: &b.Codes, KeyValueConfig: jetstream.KeyValueConfig{
			Bucket: CodesBucket, Description: "door codes that wait for their locks, sealed",
			LimitMarkerTTL: markerTTL,
		}},
	}
}

// OpenBuckets opens the buckets. It creates missing ones and changes the number of replicas (1, 3
// or 5; 0 keeps their number, or creates one). A bucket with other properties is ErrIncompatible.
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
// written, at least 100 ms. It applies to existing entries too.
func (b *Buckets) SetIdempotencyWindow(
	ctx context.Context, conns *Conns, window time.Duration,
) error {
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return fmt.Errorf("set the idempotency window: %w", err)
	}
	err = jsapi.SetUp(ctx, func(ctx context.Context) error {
		return setIdempotencyWindow(ctx, js, window)
	})
	if err != nil {
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
	// The broker rejects a duplicate window longer than MaxAge. The service does not rely on it.
	config.MaxAge, config.Duplicates = window, min(window, config.Duplicates)
	_, err = js.UpdateStream(ctx, config)
	return err
}

// BucketStreams returns the names of the streams of all buckets.
func BucketStreams() []string {
	var names []string
	for _, declared := range bucketDeclarations(&Buckets{}) {
		names = append(names, jsapi.BucketStream(declared.Bucket))
	}
	return names
}

// bucketStream returns the configuration of a bucket's stream, as far as checkDeclared compares it.
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
