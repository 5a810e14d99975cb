package jsapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// BatchRequest asks for messages of one stream in the order of their sequences. Any replica may
// answer, also one that is behind: it returns the same messages as the leader would, but perhaps
// not yet the last ones.
type BatchRequest struct {
	// Stream is required.
	Stream string
	// Prefix is the API's prefix for the stream's account (see API.WithPrefix). Defaults to the
	// prefix of the getter's API.
	Prefix string
	// From is the lowest sequence wanted. Defaults to 1.
	From uint64
	// Since, unless it is zero, takes the place of From: the first message wanted is the first that
	// was stored then or later.
	Since time.Time
	// Filter selects messages by subject. Defaults to all.
	Filter string
	// Messages is the most messages wanted, from 1 to the size of the getter.
	Messages int
	// Bytes is about how many bytes the batch may have: it ends with the first message that brings
	// it to this size. Defaults to the server's own limit.
	Bytes int
	// Bare asks for messages without headers, which the broker reads three times as fast. Their
	// sequences follow from From, so it is for all messages of a stream from which none was
	// removed. Where some are missing after all, the batch is read again with headers.
	Bare bool
}

// body encodes the request. It is written by hand: it is sent for every read of a hub's history.
func (r BatchRequest) body() []byte {
	b := make([]byte, 0, 128)
	if r.Since.IsZero() {
		b = strconv.AppendUint(append(b, `{"seq":`...), max(r.From, 1), 10)
	} else {
		b = r.Since.UTC().AppendFormat(append(b, `{"start_time":"`...), time.RFC3339Nano)
		b = append(b, '"')
	}
	b = strconv.AppendInt(append(b, `,"batch":`...), int64(r.Messages), 10)
	if r.Bytes > 0 {
		b = strconv.AppendInt(append(b, `,"max_bytes":`...), int64(r.Bytes), 10)
	}
	if r.Filter != "" {
		filter, _ := json.Marshal(r.Filter) // a string is always encoded
		b = append(append(b, `,"next_by_subj":`...), filter...)
	}
	if r.Bare {
		b = append(b, `,"no_hdr":true`...)
	}
	return append(b, '}')
}

// Message is one message of a batch.
type Message struct {
	Sequence uint64
	// Header holds what the message was stored with, and the broker's HeaderSubject and HeaderTime
	// of it; nil in a bare batch.
	Header nats.Header
	Data   []byte
}

// BatchGetter reads batches with one subscription, one after the other. The next one may be
// requested before the caller has handled the messages of the former. It belongs to one goroutine.
type BatchGetter struct {
	api     API
	sub     *nats.Subscription
	inbox   string
	answers chan *nats.Msg
	// requests counts the requests. Each has a reply subject of its own, so that late answers to an
	// earlier request can be ignored.
	requests int
	reply    string
	current  BatchRequest
}

// NewBatchGetter returns a getter of batches of up to size messages. The caller must Close it.
func (a API) NewBatchGetter(size int) (*BatchGetter, error) {
	// The channel has space for a whole batch with its end, and for the rest of a batch whose
	// caller did not wait for it: nothing is dropped here.
	g := &BatchGetter{
		api: a, inbox: a.nc.NewInbox(), answers: make(chan *nats.Msg, 2*(size+1)),
	}
	var err error
	if g.sub, err = a.nc.ChanSubscribe(g.inbox+".*", g.answers); err != nil {
		return nil, fmt.Errorf("get batches: %w", err)
	}
	return g, nil
}

// Close ends the subscription.
func (g *BatchGetter) Close() { _ = g.sub.Unsubscribe() } // fails only with the connection

// Request asks for a batch, which the next Collect returns. Late answers to an earlier request are
// ignored.
func (g *BatchGetter) Request(r BatchRequest) error {
	g.requests++
	g.reply = g.inbox + "." + strconv.Itoa(g.requests)
	g.current = r
	subject := cmp.Or(r.Prefix, g.api.prefix) + ".DIRECT.GET." + r.Stream
	return g.api.nc.PublishRequest(subject, g.reply, r.body())
}

// Get is Request followed by Collect.
func (g *BatchGetter) Get(ctx context.Context, r BatchRequest) ([]Message, error) {
	if err := g.Request(r); err != nil {
		return nil, err
	}
	return g.Collect(ctx)
}

// GetBatch reads one batch as a BatchGetter does, with a subscription of its own.
func (a API) GetBatch(ctx context.Context, r BatchRequest) ([]Message, error) {
	g, err := a.NewBatchGetter(r.Messages)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	return g.Get(ctx, r)
}

// Collect waits for the batch that was requested last, until ctx ends. No messages means that the
// replica that answered has none that match. Fewer than requested were cut at the size in bytes, or
// are all that the replica has. Sequences that are missing between messages were removed or have
// expired, or do not match the filter.
//
// The error is ErrTornBatch if messages were lost on their way, ErrNoStream if no server keeps the
// stream, or ctx's; the caller may request again after each of them.
func (g *BatchGetter) Collect(ctx context.Context) ([]Message, error) {
	msgs, err := g.collect(ctx)
	if !errors.Is(err, errGap) {
		return msgs, err
	}
	again := g.current
	again.Bare = false
	if err := g.Request(again); err != nil {
		return nil, err
	}
	return g.collect(ctx)
}

// errGap reports that a bare batch has fewer messages than sequences.
var errGap = errors.New("a batch without headers has a gap")

func (g *BatchGetter) collect(ctx context.Context) ([]Message, error) {
	msgs := make([]Message, 0, g.current.Messages)
	var last uint64
	for {
		var msg *nats.Msg
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case msg = <-g.answers:
		}
		if msg.Subject != g.reply {
			continue
		}
		switch status := Field(msg.Header, headerStatus); status {
		case "":
		case "404": // the replica has no such message
			return nil, nil
		case "204": // the end of the batch
			return msgs, g.checkEnd(msg, len(msgs), last)
		case "503":
			return nil, fmt.Errorf("%w: %w", ErrNoStream, nats.ErrNoResponders)
		default:
			return nil, fmt.Errorf(
				"get batch: status %s: %s", status, Field(msg.Header, headerDescription),
			)
		}
		m := Message{Data: msg.Data}
		if g.current.Bare {
			m.Sequence = g.current.From + uint64(len(msgs))
		} else {
			before, err := number(msg.Header, headerLastSequence)
			if err == nil {
				m.Header = msg.Header
				m.Sequence, err = Sequence(msg)
			}
			if err != nil {
				return nil, fmt.Errorf("get batch: %w", err)
			}
			if before != last {
				return nil, ErrTornBatch
			}
		}
		last = m.Sequence
		msgs = append(msgs, m)
	}
}

// checkEnd compares the messages received with those that the broker reports to have sent.
func (g *BatchGetter) checkEnd(end *nats.Msg, count int, last uint64) error {
	sent, err := number(end.Header, headerLastSequence)
	switch {
	case err != nil:
		return fmt.Errorf("get batch: %w", err)
	case sent == last && count > 0:
		return nil
	case g.current.Bare:
		return errGap
	default:
		return ErrTornBatch
	}
}

// CountMessages returns how many messages of a stream match a filter. Any replica may answer, so
// the number may be old. It asks once.
func (a API) CountMessages(ctx context.Context, stream, filter string) (int, error) {
	answer, err := a.nc.RequestWithContext(
		ctx, a.prefix+".DIRECT.GET."+stream,
		BatchRequest{Filter: filter, Messages: 1}.body(),
	)
	if err != nil {
		return 0, fmt.Errorf("count messages %s of stream %s: %w", filter, stream, err)
	}
	switch status := Field(answer.Header, headerStatus); status {
	case "":
	case "404":
		return 0, nil
	default:
		return 0, fmt.Errorf(
			"count messages %s of stream %s: status %s: %s", filter, stream, status,
			Field(answer.Header, headerDescription),
		)
	}
	// The first message of a batch comes with the number of those that follow it.
	pending, err := number(answer.Header, headerPending)
	if err != nil {
		return 0, fmt.Errorf("count messages %s of stream %s: %w", filter, stream, err)
	}
	return int(pending) + 1, nil
}
