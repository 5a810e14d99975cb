package ingest

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/hublog"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// Logs are the hubs' event logs (hublog.Logs).
type Logs interface {
	Append(
		ctx context.Context, hub domain.HubID, expected uint64, records []hublog.Record,
	) (last uint64, err error)
	LastEvents(ctx context.Context, hub domain.HubID) ([]hublog.LastEvent, error)
	LastSequence(ctx context.Context, hub domain.HubID) (uint64, error)
}

// Directory is who owns what, as it is at the moment of the call (directory.Service).
type Directory interface {
	Hub(ctx context.Context, hub domain.HubID) (domain.HubState, uint64, error)
	BeginLog(ctx context.Context, o domain.Origin, hub domain.HubID, c domain.BeginLog) error
	// ForgetDevices forgets the names and rooms that were set for devices; without any it does
	// nothing.
	ForgetDevices(ctx context.Context, o domain.Origin, hub domain.HubID, devices []int64) error
}

// Ownership is who owns what, from memory, a moment later at most (projections.Access).
type Ownership interface {
	Hub(hub domain.HubID) (domain.HubAccess, bool)
}

// Config is what a Shard works with. All of it but Tracer and Admit is required.
type Config struct {
	Logs      Logs
	Directory Directory
	Ownership Ownership
	// Presence and Ledger are the buckets of those names.
	Presence jsapi.Bucket
	Ledger   jsapi.Bucket
	// Conn is the connection to the shard's account.
	Conn *nats.Conn
	// Acks sends acks, at once or not at all (streams.FencedConn).
	Acks interface {
		Publish(subject string, data []byte) error
	}
	// Held reports whether the shard's lease is held at that moment (lease.Keeper). Where it is
	// not, nothing is written and nothing acknowledged.
	Held func() bool
	// Retention is how long the logs keep events: what the ledger must know is written well before.
	Retention time.Duration
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   *Metrics
	// Tracer begins a span for each batch of a hub's events; the zero value none.
	Tracer telemetry.Tracer
	// Admit is asked for room on the disk before anything that a hub sent is stored; its error
	// withholds the ack. Nil admits everything.
	Admit func(bytes int) error
	// Check asks for a comparison of a hub with the broker's list of connections, after a while
	// (presence.Watcher).
	Check func(hub domain.HubID, after time.Duration)
}

// LedgerName is the name of the ledger bucket; presence.BucketName is that of the other.
const LedgerName = "ledger"

const (
	// maxWorkers is how many hubs of a shard are served at once. They mostly wait for storage; a
	// batch may take 20 ms there.
	maxWorkers = 8
	// maxInbox and maxInboxBytes bound a hub's queue: a hub that keeps to the link has at most
	// 2,000 events on the way, in as many messages at worst.
	maxInbox      = 2048
	maxInboxBytes = 1 << 20
	// When the queues of a shard hold more than maxShardBytes, each hub has only fairInboxBytes, so
	// that few that flood take nothing from many that do not.
	maxShardBytes  = 32 << 20
	fairInboxBytes = 64 << 10
	// received is how many messages may wait to be sorted into queues.
	received = 8192
	// firstPause and maxPause bound how long a hub is left alone after its storage failed.
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxTries is how often one message is tried against a log that others write to as well.
	maxTries = 4
	// drainTime is how long a shard that ends may take to finish what it has received.
	drainTime = 3 * time.Second
	// maxLedgerDelay is how long the ledger of a hub may lag behind its log, when retention is
	// long: it is read only when the log's last record has expired, and what it lacks after a crash
	// is bounded by the stream's last sequence (see load.go).
	maxLedgerDelay = 5 * time.Second
	// viewWait is how long a reset waits until this replica's own view has it.
	viewWait  = 3 * time.Second
	viewPause = 2 * time.Millisecond
	// connectGrace is how long the broker's word about a connection may take, once the hub itself
	// was heard; takeoverGrace, its word about the end of a connection that another has taken over.
	connectGrace  = time.Second
	takeoverGrace = 2 * time.Second
)
