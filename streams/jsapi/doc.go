// Package jsapi speaks JetStream's API for all other packages: stream information, reading single
// messages and batches, appending with expectations and in atomic batches, key-value buckets, and
// snapshots. It uses nats.go's package jetstream where that has the call, and its types throughout:
// jetstream.APIError, jetstream.RawStreamMsg, jetstream.ClusterInfo. What it adds:
//
//   - Reads from the leader. nats.go lets any replica answer GetMsg on a stream that allows direct
//     gets, and a replica may be behind. API and Bucket ask the leader of the stream, so everything
//     that was acknowledged before the call is seen. Functions that any replica may answer say so.
//   - Protection against deposed leaders. A leader that is cut off from its followers still answers
//     for some seconds. Info rejects the answer of a follower, and of a leader that a majority has
//     not answered lately. If a stream seems to end before a sequence that the caller has seen,
//     ConfirmedInfo asks until one leader has repeated that for some seconds.
//   - Batched direct gets (BatchGetter, BatchPool) and atomic batches (Append), which nats.go does
//     not have.
//
// # Errors
//
// ErrNotFound, ErrNoStream, ErrNoLeader, ErrOffline, ErrConflict, ErrOutcomeUnknown, ErrUnconfirmed
// and ErrTornBatch are sentinels for errors.Is. Any other answer of the broker is a
// *jetstream.APIError. IsTemporary reports whether the same call can succeed later; Unavailable
// turns such an error into the API's service_unavailable.
//
// # Retries
//
// There is one policy, Retry: reads and key-value gets are repeated while no leader answers, for 15
// s or until ctx ends, each try for at most 2 s. Append sends once: after ErrOutcomeUnknown only
// the caller can find out whether its messages were stored. So the callers repeat their appends:
// ingest in hubState.withState, directory in Log.publish, outbox in Outbox.put, commands in
// Commands.append, and journal in Writer.send. feed repeats its loads of history, which any copy
// of a stream may answer, in Logs.records.
//
// # Goroutines
//
// Watcher.Watch starts goroutines and waits for them before it returns. Nothing else starts any. A
// BatchGetter belongs to one goroutine; everything else is safe for concurrent use.
package jsapi
