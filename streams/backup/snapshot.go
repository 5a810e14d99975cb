package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"
)

const (
	// chunkSize is how many bytes of a snapshot one message has, in both directions: far below
	// every broker's limit.
	chunkSize = 128 << 10
	// quietTimeout is how long the broker may be silent in the midst of a snapshot, or take for one
	// part of a restore.
	quietTimeout = 30 * time.Second
	// snapshotTries is how often a stream is taken that is caught in the midst of a batch, or of
	// which something was lost on the way.
	snapshotTries = 20

	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
)

var (
	// errTorn says that parts of a snapshot were lost on the way.
	errTorn = errors.New("parts of the snapshot were lost on the way")
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
	inbox := nc.NewInbox()
	parts, err := nc.SubscribeSync(inbox)
	if err != nil {
		return taken, err
	}
	defer func() { _ = parts.Unsubscribe() }() // fails only with the connection, which ends it too
	// The broker holds no more than its window back; without a bound here nothing is dropped for
	// being slow.
	if err := parts.SetPendingLimits(-1, -1); err != nil {
		return taken, err
	}
	reconnects := nc.Stats().Reconnects
	var begun struct {
		Config json.RawMessage `json:"config"`
		State  streamState     `json:"state"`
	}
	question := map[string]any{
		"deliver_subject": inbox,
		"no_consumers":    true,
		"chunk_size":      chunkSize,
	}
	if err := askOnce(ctx, nc, apiStreamSnapshot+stream, askTimeout, question, &begun); err != nil {
		return taken, fmt.Errorf("stream %s: %w", stream, err)
	}

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
	err = receive(ctx, parts, io.MultiWriter(w, looked))
	_ = looked.CloseWithError(err) // never fails; nil is the end
	err = errors.Join(err, <-result)
	if err == nil && nc.Stats().Reconnects != reconnects {
		err = errTorn
	}
	// Only messages that expired or were removed meanwhile may be missing.
	if err == nil && seen > begun.State.Messages {
		err = fmt.Errorf("%d messages were announced, and %d came", begun.State.Messages, seen)
	}
	if err != nil {
		return taken, fmt.Errorf("snapshot of stream %s: %w", stream, err)
	}
	return Stream{
		Name: stream, Messages: seen, First: begun.State.First, Last: begun.State.Last,
		Config: begun.Config,
	}, nil
}

// receive writes the parts of a snapshot in their order, and acknowledges each: the broker goes on
// as far as that is done.
func receive(ctx context.Context, parts *nats.Subscription, w io.Writer) error {
	for next := 1; ; next++ {
		waiting, cancel := context.WithTimeout(ctx, quietTimeout)
		msg, err := parts.NextMsgWithContext(waiting)
		cancel()
		if err != nil {
			return fmt.Errorf("wait for the broker: %w", err)
		}
		if len(msg.Data) == 0 {
			if status := msg.Header.Get("Status"); status != "" && status != "204" {
				return fmt.Errorf(
					"the broker gives up: %s %s", status, msg.Header.Get("Description"),
				)
			}
			return nil
		}
		if _, err := w.Write(msg.Data); err != nil {
			return err
		}
		if msg.Reply == "" {
			continue // the last part, which is not acknowledged
		}
		if size, index := placeOf(msg.Reply); size != len(msg.Data) || index != next {
			return errTorn
		}
		if err := msg.Respond(nil); err != nil {
			return err
		}
	}
}

// placeOf reads from where a part is to be acknowledged how many bytes it has, and which one it is,
// from 1: the last two words.
func placeOf(reply string) (size, index int) {
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
			return messages, errTorn
		case err != nil && first:
			return 0, fmt.Errorf("%w: %w", errOldBroker, err)
		case err != nil:
			return messages, err
		case first: // what the broker says of the stream
		case entry.Name == "" && entry.Sequence == 0:
			ended = true
		default:
			messages++
			header = slices.Grow(header[:0], int(min(entry.HeaderSize, chunkSize)))[:min(entry.HeaderSize, chunkSize)]
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
	if fields.Get(headerBatchSequence) != "" && fields.Get(headerBatchCommit) == "" {
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
	var begun struct {
		Deliver string `json:"deliver_subject"`
	}
	question := map[string]any{
		"config": config,
		"state":  streamState{Messages: taken.Messages, First: taken.First, Last: taken.Last},
	}
	if err := askOnce(ctx, nc, apiStreamRestore+taken.Name, askTimeout, question, &begun); err != nil {
		return err
	}
	chunk := make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			refused, err := hand(ctx, nc, begun.Deliver, chunk[:n], quietTimeout)
			if err == nil && len(refused) > 0 {
				err = decodeAnswer(refused, nil)
			}
			if err != nil {
				return err
			}
			passed(int64(n))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	var made struct {
		State streamState `json:"state"`
	}
	answer, err := hand(ctx, nc, begun.Deliver, nil, restoreTimeout)
	if err == nil {
		err = decodeAnswer(answer, &made)
	}
	if err == nil && made.State.Last != taken.Last {
		err = fmt.Errorf(
			"it ends at sequence %d, and was taken up to %d", made.State.Last, taken.Last,
		)
	}
	if err != nil || replicas <= 1 {
		return err
	}
	return awaitCopies(ctx, nc, taken.Name)
}

// awaitCopies returns once every replica has all of a stream. One server brings it back; if that
// were lost before the others have it, they could not agree on a leader.
func awaitCopies(ctx context.Context, nc *nats.Conn, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	for {
		var info struct {
			Cluster struct {
				Leader   string `json:"leader"`
				Replicas []struct {
					Current bool   `json:"current"`
					Lag     uint64 `json:"lag"`
				} `json:"replicas"`
			} `json:"cluster"`
		}
		if err := ask(ctx, nc, apiStreamInfo+stream, nil, &info); err != nil {
			return err
		}
		behind := info.Cluster.Leader == "" || len(info.Cluster.Replicas) == 0
		for _, replica := range info.Cluster.Replicas {
			behind = behind || !replica.Current || replica.Lag > 0
		}
		if !behind {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not every replica has it: %w", ctx.Err())
		case <-time.After(copiesPause):
		}
	}
}

const (
	// restoreTimeout bounds what the broker does after the last part of a stream: it makes it
	// ready, on every replica.
	restoreTimeout = 10 * time.Minute
	// interestTimeout is how long another server of a cluster may take to hear that parts are
	// waited for.
	interestTimeout = 5 * time.Second
	interestPause   = 20 * time.Millisecond
	// copiesPause is the pause between two looks at the replicas of a restored stream.
	copiesPause = 50 * time.Millisecond
)

// hand gives the broker one part of a snapshot, and its answer once it has dealt with it.
func hand(
	ctx context.Context, nc *nats.Conn, subject string, part []byte, within time.Duration,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for began := time.Now(); ; {
		answer, err := nc.RequestWithContext(ctx, subject, part)
		if err == nil {
			return answer.Data, nil
		}
		// Nobody has got it then: it can be sent again.
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

// configFor is a stream's configuration as it was, for another broker: with another number of
// replicas, wherever that puts them.
func configFor(taken json.RawMessage, replicas int) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(taken)))
	decoder.UseNumber() // durations have more digits than a float keeps
	config := map[string]any{}
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("%w: its configuration cannot be read", ErrDamaged)
	}
	config["num_replicas"] = replicas
	delete(config, "placement")
	delete(config, "metadata") // the broker's own remarks
	return config, nil
}
