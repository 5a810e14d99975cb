package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/jsapi"
)

// snapshotTries is how often a stream is taken that is caught in the midst of a batch, or of which
// something was lost on the way.
const snapshotTries = 20

var (
	// errTornBatch says that the moment that a snapshot shows lies in the midst of an atomic batch.
	errTornBatch = errors.New("its last messages are only a part of what was stored as one")
	// errOldBroker says that the broker's snapshots are of another kind.
	errOldBroker = errors.New(
		"the broker's snapshots are not those of nats-server 2.15 or later, which show a stream " +
			"at one moment while it is written to",
	)
)

// snapshot has the broker write a stream, as it is at one moment, into w, and says what was
// written. passed counts the bytes of messages.
func snapshot(
	ctx context.Context, nc *nats.Conn, stream string, w io.Writer, passed func(int64),
) (taken Stream, err error) {
	// What comes is looked through while it is written: a snapshot counts only with all its
	// messages and its end.
	inspected, looked := io.Pipe()
	result := make(chan error, 1)
	var seen uint64
	go func() {
		var err error
		seen, err = inspect(inspected, passed)
		inspected.CloseWithError(err)
		result <- err
	}()
	begun, err := jsapi.New(nc).Snapshot(ctx, stream, io.MultiWriter(w, looked))
	_ = looked.CloseWithError(err) // never fails; nil is the end
	inspectErr := <-result
	if err == nil {
		err = inspectErr
	}
	// Only messages that expired or were removed meanwhile may be missing.
	if err == nil && seen > begun.State.Msgs {
		err = fmt.Errorf("%d messages were announced, and %d came", begun.State.Msgs, seen)
	}
	if err != nil {
		return taken, fmt.Errorf("snapshot of stream %s: %w", stream, err)
	}
	return Stream{
		Name: stream, Messages: seen, First: begun.State.FirstSeq, Last: begun.State.LastSeq,
		Config: begun.Config,
	}, nil
}

// maxHeader bounds the header that is looked at of each message.
const maxHeader = 128 << 10

// inspect reads a snapshot to its end and counts its messages. The error says that it is none, has
// no end, or ends in the midst of a batch: the broker takes its moment without regard to those.
func inspect(r io.Reader, passed func(int64)) (messages uint64, err error) {
	entries := archive.NewReader(s2.NewReader(r))
	ended := false
	var header []byte // of the last message
	for first := true; ; first = false {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && ended:
			return messages, checkBatch(header)
		case errors.Is(err, io.EOF):
			return messages, jsapi.ErrTornSnapshot
		case err != nil && first:
			return 0, fmt.Errorf("%w: %w", errOldBroker, err)
		case err != nil:
			return messages, err
		case first: // what the broker says of the stream
		case entry.Name == "" && entry.Sequence == 0:
			ended = true
		default:
			messages++
			header = slices.Grow(header[:0], int(min(entry.HeaderSize, maxHeader)))[:min(entry.HeaderSize, maxHeader)]
			if _, err := io.ReadFull(entries, header); err != nil {
				return messages, err
			}
			passed(entry.HeaderSize + entry.PayloadSize)
		}
	}
}

// checkBatch returns errTornBatch for a message that is part of a batch and not its last.
func checkBatch(header []byte) error {
	if len(header) == 0 {
		return nil
	}
	fields, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return fmt.Errorf("headers of the last message: %w", err)
	}
	if fields.Get(jsapi.HeaderBatchSequence) != "" && fields.Get(jsapi.HeaderBatchCommit) == "" {
		return errTornBatch
	}
	return nil
}

// restoreStream brings a stream back from a snapshot into an account that has none of that name,
// with as many replicas as asked.
func restoreStream(
	ctx context.Context, nc *nats.Conn, taken Stream, replicas int, r io.Reader, passed func(int64),
) error {
	config, err := configFor(taken.Config, replicas)
	if err != nil {
		return err
	}
	made, err := jsapi.New(nc).Restore(ctx, taken.Name, jsapi.SnapshotState{
		Config: config,
		State: jetstream.StreamState{
			Msgs: taken.Messages, FirstSeq: taken.First, LastSeq: taken.Last,
		},
	}, r, passed)
	if err == nil && made.LastSeq != taken.Last {
		err = fmt.Errorf("it ends at sequence %d, and was taken up to %d", made.LastSeq, taken.Last)
	}
	if err != nil || replicas <= 1 {
		return err
	}
	return awaitCopies(ctx, nc, taken.Name)
}

const (
	// copiesTimeout bounds how long the replicas of a restored stream may take to have all of it,
	// and copiesPause is the pause between two looks at them.
	copiesTimeout = 10 * time.Minute
	copiesPause   = 50 * time.Millisecond
)

// awaitCopies returns once every replica has all of a stream. One server brings it back; if that
// were lost before the others have it, they could not agree on a leader.
func awaitCopies(ctx context.Context, nc *nats.Conn, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	for {
		info, err := jsapi.New(nc).Info(ctx, stream)
		if err == nil && isCopied(info.Cluster) {
			return nil
		}
		if err != nil && !errors.Is(err, jsapi.ErrNoLeader) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not every replica has it: %w", ctx.Err())
		case <-time.After(copiesPause):
		}
	}
}

// isCopied reports whether every server of a stream's group has all of the stream.
func isCopied(group *jetstream.ClusterInfo) bool {
	return group != nil && len(group.Replicas) > 0 &&
		!slices.ContainsFunc(group.Replicas, func(peer *jetstream.PeerInfo) bool {
			return !peer.Current || peer.Lag > 0
		})
}

// configFor is a stream's configuration as it was, for another broker: with another number of
// replicas, wherever that puts them.
func configFor(taken json.RawMessage, replicas int) (json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(string(taken)))
	decoder.UseNumber() // durations have more digits than a float keeps
	config := map[string]any{}
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("%w: its configuration cannot be read", ErrDamaged)
	}
	config["num_replicas"] = replicas
	delete(config, "placement")
	delete(config, "metadata") // the broker's own remarks
	return json.Marshal(config)
}
