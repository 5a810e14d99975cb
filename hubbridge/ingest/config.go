package ingest

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// Logs are the hubs' event logs (feed.Logs).
type Logs interface {
	// Append stores records wholly or not at all, if the log's last event has the sequence
	// expected, and returns the sequence of the last record. Errors: jsapi.ErrConflict if the log
	// has another last event, jsapi.ErrOutcomeUnknown if the records may be stored.
	Append(
		ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
	) (last uint64, err error)
	// LastEvents returns the last event of the hub and the last event of the cloud, as far as they
	// exist.
	LastEvents(ctx context.Context, hub domain.HubID) ([]feed.LastEvent, error)
	// LastSequence returns the last sequence of the hub's stream, also of an expired record.
	LastSequence(ctx context.Context, hub domain.HubID) (uint64, error)
}

// Directory looks up hubs in the directory itself (directory.Service).
type Directory interface {
	// Hub returns the state of a hub and the sequence of its last event. An unknown hub has the
	// zero state and 0.
	Hub(ctx context.Context, hub domain.HubID) (domain.HubState, uint64, error)
	// BeginEpoch begins a new epoch of the hub's event log. It returns rate_limited if the hub is
	// reset too often.
	BeginEpoch(ctx context.Context, o domain.Origin, hub domain.HubID, c domain.BeginEpoch) error
	// ForgetDevices deletes the names and rooms that were set for devices. It does nothing for
	// devices without any.
	ForgetDevices(ctx context.Context, o domain.Origin, hub domain.HubID, devices []int64) error
}

// Ownership looks up the owners of hubs in memory, at most moments behind the directory
// (projections.Access).
type Ownership interface {
	Hub(hub domain.HubID) (domain.HubAccess, bool)
}

// Config configures a Shard. All fields but Tracer, Admit, Budget, Faults and Waiting are
// required.
type Config struct {
	Logs      Logs
	Directory Directory
	Ownership Ownership
	// Presence is the bucket presence.BucketName.
	Presence jsapi.Bucket
	// Checkpoints is the bucket CheckpointBucket.
	Checkpoints jsapi.Bucket
	// Conn is the connection to the shard's account.
	Conn *nats.Conn
	// Acks sends acks, at once or not at all (streams.FencedConn).
	Acks interface {
		Publish(subject string, data []byte) error
	}
	// LeaseHeld reports whether the shard's lease is certainly held at that moment (lease.Term).
	// Without it nothing is written that the journal does not fence.
	LeaseHeld func() bool
	// Serving reports whether no other replica is known to have acquired the lease (lease.Term).
	// Otherwise nothing is written and nothing acknowledged.
	Serving func() bool
	// Waiting returns hubs that may have sent something while nobody served the shard: once the
	// shard receives, it repeats their acks, so that they send again at once. Nil names none.
	Waiting func() []domain.HubID
	// Retention is how long the logs keep events. Checkpoints are written well before it is over.
	Retention time.Duration
	Now       func() time.Time
	Logger    *slog.Logger
	Metrics   *Metrics
	// Tracer starts a span for each batch of a hub's events; the zero Tracer starts none.
	Tracer telemetry.Tracer
	// Faults keeps what hubs do wrong. Defaults to a registry that nobody reads.
	Faults *FaultRegistry
	// Budget bounds what each hub and organization stores and sends; nil bounds nothing.
	Budget *Budget
	// Admit returns an error if the disk lacks space for a number of bytes. It is called before
	// anything that a hub sent is stored; after an error the hub gets no ack. Nil admits
	// everything.
	Admit func(bytes int) error
}

// CheckpointBucket is the name of the bucket of ingest checkpoints.
const CheckpointBucket = "checkpoints"

const (
	// maxWorkers is how many hubs of a shard are handled at once. Workers mostly wait for a
	// commit of the journal, which takes what all of them have appended: on a disk that takes
	// 5 ms for a sync, fewer workers would store fewer events.
	maxWorkers = 64
	// itemCost is what an item counts on its hub's turns besides its bytes: a commit and an ack of one
	// small event take as long as some hundred bytes more or less.
	itemCost = 1 << 10
	// maxIdleWorkers is how many goroutines of a shard are kept for the next workers.
	maxIdleWorkers = 16
	// maxInbox and maxInboxBytes bound a hub's inbox. A hub that follows the protocol has at most
	// protocol.MaxUnacknowledged events under way, in as many messages at worst.
	maxInbox      = 2048
	maxInboxBytes = 1 << 20
	// When the inboxes of a shard hold more than maxShardBytes, each hub has only fairInboxBytes,
	// so that a few flooding hubs leave space for all others.
	maxShardBytes  = 32 << 20
	fairInboxBytes = 64 << 10
	// receiveQueue is how many messages may wait to be put into inboxes.
	receiveQueue = 8192
	// firstPause is the pause of a hub after an item failed. It doubles up to maxPause with each
	// further failure.
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxTries is how often an item is tried at once after errStale: when another process writes to
	// the log, or when the outcome of a write is unknown, as after the loss of a leader. Then the
	// hub pauses.
	maxTries = 4
	// endCheckPause is the least time between two looks at the end of a log for messages that begin
	// beyond it.
	endCheckPause = 10 * time.Second
	// drainTime is how long a shard that ends may take to handle the messages it has received.
	drainTime = 3 * time.Second
	// maxCheckpointDelay is how long a hub's checkpoint may be behind its log, when retention is
	// long. The checkpoint is read only when the log's last record has expired, and the log's last
	// sequence bounds what the checkpoint lacks after a crash (see sources.resolve). Each
	// checkpoint is a synced write, so they are spread over this time. maxCheckpointTick is the
	// longest interval between ticks.
	maxCheckpointDelay = 5 * time.Minute
	maxCheckpointTick  = 2500 * time.Millisecond
	// viewWait is how long a reset waits until this replica's view shows the new epoch. viewPause
	// is the time between two looks.
	viewWait  = 3 * time.Second
	viewPause = 2 * time.Millisecond
	// connectGrace is how long the broker may take to report a connection after the hub's hello;
	// takeoverGrace, to report the end of a connection that another one has taken over.
	connectGrace  = time.Second
	takeoverGrace = 2 * time.Second
)
