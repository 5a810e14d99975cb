package jsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// chunkSize is how many bytes of a snapshot a message has, in both directions: far below the
	// limit of every broker.
	chunkSize = 128 << 10
	// beginTimeout bounds the request that begins a snapshot or a restore.
	beginTimeout = 20 * time.Second
	// chunkTimeout is how long the broker may be silent during a snapshot, or take for one chunk of
	// a restore.
	chunkTimeout = 30 * time.Second
	// restoreTimeout bounds the wait after the last chunk of a restore, while the broker prepares
	// the stream on every replica.
	restoreTimeout = 10 * time.Minute
	// interestTimeout is how long another server of a cluster may take to learn of the subscription
	// to chunks, and interestPause the pause between two tries meanwhile.
	interestTimeout = 5 * time.Second
	interestPause   = 20 * time.Millisecond
)

var (
	// ErrTornSnapshot reports that chunks of a snapshot were lost on their way. The caller can take
	// another snapshot.
	ErrTornSnapshot = errors.New("chunks of the snapshot were lost on their way")
	// ErrStreamExists reports that a stream of that name exists, or that the broker has not ended
	// an interrupted restore of it yet.
	ErrStreamExists = errors.New("a stream of that name exists")
)

// codeRestoreNameExists rejects a restore of a stream that exists.
const codeRestoreNameExists jetstream.ErrorCode = 10130

// SnapshotState describes a stream: Snapshot returns it, and Restore sends it to the broker.
type SnapshotState struct {
	Config json.RawMessage
	State  jetstream.StreamState
}

// begin sends a request that begins a snapshot or a restore. It sends once, since a repeated
// request could begin a second one.
func begin[T any, P interface {
	*T
	failure() error
}](ctx context.Context, a API, subject string, question any) (P, error) {
	a.retry = Retry{Total: beginTimeout, Try: beginTimeout, If: func(error) bool { return false }}
	return request[T, P](ctx, a, subject, question, nil)
}

// Snapshot writes a stream, as it is at one moment, to w in the broker's format (package archive of
// nats-server, compressed with S2), without its consumers. The snapshot may lack messages of the
// returned state that have expired or were removed meanwhile. After an error the caller must
// discard everything written to w; the error is ErrTornSnapshot if another try may succeed.
func (a API) Snapshot(ctx context.Context, stream string, w io.Writer) (*SnapshotState, error) {
	inbox := a.nc.NewInbox()
	chunks, err := a.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = chunks.Unsubscribe() }() // fails only with the connection, which ends it too
	// The broker sends no more than its window ahead. Without a limit here nothing is dropped.
	if err := chunks.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	reconnects := a.nc.Stats().Reconnects
	type snapshotResponse struct {
		response
		Config json.RawMessage       `json:"config"`
		State  jetstream.StreamState `json:"state"`
	}
	begun, err := begin[snapshotResponse](ctx, a, "STREAM.SNAPSHOT."+stream, map[string]any{
		"deliver_subject": inbox, "no_consumers": true, "chunk_size": chunkSize,
	})
	if err != nil {
		return nil, err
	}
	if err := receiveChunks(ctx, chunks, w); err != nil {
		return nil, err
	}
	if a.nc.Stats().Reconnects != reconnects {
		return nil, ErrTornSnapshot
	}
	return &SnapshotState{Config: begun.Config, State: begun.State}, nil
}

// receiveChunks writes the chunks of a snapshot in their order, and acknowledges each: the broker
// sends only a window ahead of the acknowledgements.
func receiveChunks(ctx context.Context, chunks *nats.Subscription, w io.Writer) error {
	for next := 1; ; next++ {
		waiting, cancel := context.WithTimeout(ctx, chunkTimeout)
		msg, err := chunks.NextMsgWithContext(waiting)
		cancel()
		if err != nil {
			return fmt.Errorf("wait for the broker: %w", err)
		}
		if len(msg.Data) == 0 {
			if status := Field(msg.Header, headerStatus); status != "" && status != "204" {
				return fmt.Errorf(
					"the broker ends the snapshot: status %s: %s", status,
					Field(msg.Header, headerDescription),
				)
			}
			return nil
		}
		if _, err := w.Write(msg.Data); err != nil {
			return err
		}
		if msg.Reply == "" {
			continue // the last chunk, which is not acknowledged
		}
		if size, index := parseChunkAck(msg.Reply); size != len(msg.Data) || index != next {
			return ErrTornSnapshot
		}
		if err := msg.Respond(nil); err != nil {
			return err
		}
	}
}

// parseChunkAck returns the size and the index (from 1) of a chunk: the last two words of the
// subject to acknowledge it to.
func parseChunkAck(reply string) (size, index int) {
	words := strings.Split(reply, ".")
	if len(words) < 2 {
		return 0, 0
	}
	size, sizeErr := strconv.Atoi(words[len(words)-2])
	index, indexErr := strconv.Atoi(words[len(words)-1])
	if sizeErr != nil || indexErr != nil {
		return 0, 0
	}
	return size, index
}

type restoreResponse struct {
	response
	Deliver string                `json:"deliver_subject"`
	State   jetstream.StreamState `json:"state"`
}

// Restore creates a stream from a snapshot, with the configuration in taken, and returns the state
// of the new stream. sent is called with the size of each chunk that the broker has accepted. The
// error is ErrStreamExists if the stream exists. An interrupted restore leaves no stream, but the
// name stays in use until the broker ends the restore, some seconds later.
func (a API) Restore(
	ctx context.Context, stream string, taken SnapshotState, r io.Reader, sent func(int64),
) (*jetstream.StreamState, error) {
	question := map[string]any{"config": taken.Config, "state": taken.State}
	begun, err := begin[restoreResponse](ctx, a, "STREAM.RESTORE."+stream, question)
	var answered *jetstream.APIError
	if errors.As(err, &answered) && answered.ErrorCode == codeRestoreNameExists {
		return nil, fmt.Errorf("%w: %w", ErrStreamExists, err)
	}
	if err != nil {
		return nil, err
	}
	chunk := make([]byte, chunkSize)
	for {
		n, readErr := io.ReadFull(r, chunk)
		if n > 0 {
			answer, err := a.sendChunk(ctx, begun.Deliver, chunk[:n], chunkTimeout)
			if err == nil && len(answer) > 0 {
				err = decode(answer, &restoreResponse{})
			}
			if err != nil {
				return nil, err
			}
			sent(int64(n))
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			break
		}
		if readErr != nil {
			return nil, readErr
		}
	}
	var made restoreResponse
	answer, err := a.sendChunk(ctx, begun.Deliver, nil, restoreTimeout)
	if err == nil {
		err = decode(answer, &made)
	}
	if err != nil {
		return nil, err
	}
	return &made.State, nil
}

// sendChunk sends one chunk and returns the broker's answer to it.
func (a API) sendChunk(
	ctx context.Context, subject string, chunk []byte, timeout time.Duration,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for began := time.Now(); ; {
		answer, err := a.nc.RequestWithContext(ctx, subject, chunk)
		if err == nil {
			return answer.Data, nil
		}
		// Without responders no server has received the chunk: it can be sent again.
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) > interestTimeout {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(interestPause):
		}
	}
}
