package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
)

// maxHeader is how many bytes of a message's header are read.
const maxHeader = 128 << 10

var (
	// errSplitBatch reports that a snapshot ends in the middle of an atomic batch.
	errSplitBatch = errors.New("the snapshot ends in the middle of a batch")
	// errOldBroker reports that the broker's snapshots have an unknown format.
	errOldBroker = errors.New(
		"the broker's snapshot has an unknown format: a backup needs nats-server 2.15 or later, " +
			"whose snapshots show a stream at one moment while it is written to",
	)
)

// writeSnapshot writes a stream, as it is at one moment, to w, and returns its description. read
// is called with the size of each message. The error is jsapi.ErrTornSnapshot or errSplitBatch if
// another try may succeed.
func writeSnapshot(
	ctx context.Context, nc *nats.Conn, name string, w io.Writer, read func(int64),
) (Stream, error) {
	// The snapshot is inspected while it is written.
	pipeOut, pipeIn := io.Pipe()
	inspected := make(chan error, 1)
	var count uint64
	go func() {
		var err error
		count, err = inspect(pipeOut, read)
		pipeOut.CloseWithError(err)
		inspected <- err
	}()
	begun, err := jsapi.New(nc).Snapshot(ctx, name, io.MultiWriter(w, pipeIn))
	_ = pipeIn.CloseWithError(err) // never fails; a nil error is the end of the file
	inspectErr := <-inspected
	if err == nil {
		err = inspectErr
	}
	// There may be fewer messages than reported, since some expire or are removed meanwhile.
	if err == nil && count > begun.State.Msgs {
		err = fmt.Errorf("got %d messages, the broker reported %d", count, begun.State.Msgs)
	}
	if err != nil {
		return Stream{}, fmt.Errorf("snapshot of stream %s: %w", name, err)
	}
	return Stream{
		Name: name, Messages: count, First: begun.State.FirstSeq, Last: begun.State.LastSeq,
		Config: begun.Config,
	}, nil
}

// inspect reads a snapshot to its end and returns the number of its messages. The error is
// errOldBroker, jsapi.ErrTornSnapshot for a snapshot without an end, or errSplitBatch: the broker
// pays no regard to batches when it takes a snapshot.
func inspect(r io.Reader, read func(int64)) (messages uint64, err error) {
	entries := archive.NewReader(s2.NewReader(r))
	ended := false
	var header []byte // of the last message
	for first := true; ; first = false {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && ended:
			return messages, checkBatchEnd(header)
		case errors.Is(err, io.EOF):
			return messages, jsapi.ErrTornSnapshot
		case err != nil && first:
			return 0, fmt.Errorf("%w: %w", errOldBroker, err)
		case err != nil:
			return messages, err
		case first: // the stream's description
		case entry.Name == "" && entry.Sequence == 0:
			ended = true
		default:
			messages++
			size := int(min(entry.HeaderSize, maxHeader))
			header = slices.Grow(header[:0], size)[:size]
			if _, err := io.ReadFull(entries, header); err != nil {
				return messages, err
			}
			read(entry.HeaderSize + entry.PayloadSize)
		}
	}
}

// checkBatchEnd returns errSplitBatch for the header of a message that belongs to a batch and is
// not its last one.
func checkBatchEnd(header []byte) error {
	if len(header) == 0 {
		return nil
	}
	fields, err := nats.DecodeHeadersMsg(header)
	if err != nil {
		return fmt.Errorf("headers of the last message: %w", err)
	}
	if fields.Get(jsapi.HeaderBatchSequence) != "" && fields.Get(jsapi.HeaderBatchCommit) == "" {
		return errSplitBatch
	}
	return nil
}
