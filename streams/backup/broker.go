package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// askTimeout bounds one question to the broker.
	askTimeout = 20 * time.Second
	// tryTimeout is after how long it is asked again: a stream without a leader does not answer,
	// and has forgotten the question when it has one.
	tryTimeout = 4 * time.Second

	apiStreamNames    = "$JS.API.STREAM.NAMES"
	apiStreamInfo     = "$JS.API.STREAM.INFO."
	apiStreamDelete   = "$JS.API.STREAM.DELETE."
	apiStreamSnapshot = "$JS.API.STREAM.SNAPSHOT."
	apiStreamRestore  = "$JS.API.STREAM.RESTORE."
	apiMessageGet     = "$JS.API.STREAM.MSG.GET."
	apiDirectGet      = "$JS.API.DIRECT.GET."

	// codeNoMessage is the broker's error for a stream without such a message, codeNoStream that
	// for no such stream.
	codeNoMessage = 10037
	codeNoStream  = 10059
	// codeNameInUse refuses a restore of a stream that is there.
	codeNameInUse = 10130
)

// streamState is how the broker tells what is in a stream.
type streamState struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
}

// ask puts a question to the broker's API, again if need be, and decodes the answer. A refusal is a
// *streams.BrokerError.
func ask(ctx context.Context, nc *nats.Conn, subject string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		err := askOnce(ctx, nc, subject, tryTimeout, question, answer)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
}

// askOnce is ask for what must not be begun twice.
func askOnce(
	ctx context.Context, nc *nats.Conn, subject string, within time.Duration, question, answer any,
) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var text []byte
	if question != nil {
		var err error
		if text, err = json.Marshal(question); err != nil {
			return err
		}
	}
	msg, err := nc.RequestWithContext(ctx, subject, text)
	if err != nil {
		return fmt.Errorf("ask the broker (%s): %w", subject, err)
	}
	return decodeAnswer(msg.Data, answer)
}

func decodeAnswer(text []byte, answer any) error {
	var refused struct {
		Error *streams.BrokerError `json:"error"`
	}
	if err := json.Unmarshal(text, &refused); err != nil {
		return fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	if refused.Error != nil {
		return refused.Error
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	return nil
}

func isCode(err error, code int) bool {
	var refusal *streams.BrokerError
	return errors.As(err, &refusal) && refusal.Code == code
}

// streamNames lists the streams of an account.
func streamNames(ctx context.Context, nc *nats.Conn) (names []string, err error) {
	for {
		var page struct {
			Total   int      `json:"total"`
			Streams []string `json:"streams"`
		}
		if err := ask(ctx, nc, apiStreamNames, map[string]int{
			"offset": len(names),
		}, &page); err != nil {
			return nil, fmt.Errorf("list the streams: %w", err)
		}
		names = append(names, page.Streams...)
		if len(page.Streams) == 0 || len(names) >= page.Total {
			// One that is made between two pages moves those behind it, and one of them comes
			// twice.
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}

// stateOf says what is in a stream. A server that knows of no leader may answer, from what it has:
// a stale size makes the progress of a backup wrong, and nothing else. Whether there is the stream
// is the word of the cluster's own leader. A deposed one can miss the mark of a restore that began
// seconds ago: a service that starts at that moment finds out when it opens its streams, which are
// not there.
func stateOf(ctx context.Context, nc *nats.Conn, stream string) (streamState, error) {
	var info struct {
		State streamState `json:"state"`
	}
	err := ask(ctx, nc, apiStreamInfo+stream, nil, &info)
	return info.State, err
}

// isHubLog tells the streams of hub logs from what else a shard's account has.
func isHubLog(stream string) bool { return strings.HasPrefix(stream, streams.HubStream("")) }

// account gives the connection to an account, as a manifest names it.
func account(conns *streams.Conns, name streams.Account) (*nats.Conn, error) {
	if name == streams.AccountCloud {
		return conns.Cloud, nil
	}
	for i, nc := range conns.Shards {
		if name == streams.ShardAccount(i) {
			return nc, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no account %q", ErrDamaged, name)
}
