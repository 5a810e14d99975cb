package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// A request of another replica is a message on streams.AppendSubject with the records as the commit
// that Marshal makes of them, and these headers. Its answer has only headers.
const (
	headerHub      = "Hubcloud-Hub"
	headerExpected = "Hubcloud-Expected" // absent for AnyEnd
	headerLast     = "Hubcloud-Last"     // the sequence of the last record
	headerError    = "Hubcloud-Error"    // one of the outcomes below
	headerDetail   = "Hubcloud-Detail"   // the error's text
)

// The outcomes that an answer can have beside success.
const (
	outcomeStopped  = "stopped"  // errStopped
	outcomeConflict = "conflict" // jsapi.ErrConflict
	outcomeUnknown  = "unknown"  // jsapi.ErrOutcomeUnknown
	outcomeFailed   = "failed"   // nothing was stored
)

// maxRemote bounds the requests of other replicas that a writer handles at once.
const maxRemote = 256

// drainTimeout is how long a writer that ends waits for the broker before it gives up the requests
// of other replicas that are under way to it.
const drainTimeout = time.Second

// errNoWriter means that no replica answered: nothing was stored.
var errNoWriter = errors.New("no replica writes the journal")

// send sends a request to the replica that writes the group's
func (j *Journal) send(ctx context.Context, g *group, req *request) (last uint64, err error) {
	msg := nats.NewMsg(streams.AppendSubject(g.number))
	msg.Header.Set(headerHub, string(req.hub))
	if req.expected != AnyEnd {
		msg.Header.Set(headerExpected, strconv.FormatUint(req.expected, 10))
	}
	if msg.Data, err = marshalRecords(req); err != nil {
		return 0, err
	}
	answer, err := j.cfg.Conn.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return 0, errNoWriter
	case err != nil:
		return 0, fmt.Errorf("%w: journal %d: %w", jsapi.ErrOutcomeUnknown, g.number, err)
	}
	return parseAnswer(answer.Header)
}

// marshalRecords returns a request's records as a commit. Its sequences and times mean nothing: the
// writer sets them.
func marshalRecords(req *request) ([]byte, error) {
	records := slices.Clone(req.records)
	for i := range records {
		r := &records[i]
		r.Hub, r.Seq, r.Time = req.hub, uint64(i+1), time.Unix(0, int64(i+1))
	}
	c, err := NewCommit(
		1, 1, records, func(domain.HubID) (Tip, bool) { return Tip{}, false },
	)
	if err != nil {
		return nil, err
	}
	return Marshal(&c)
}

// parseAnswer reads the headers of an answer.
func parseAnswer(h nats.Header) (last uint64, err error) {
	detail := h.Get(headerDetail)
	switch outcome := h.Get(headerError); outcome {
	case "":
		if last, err = strconv.ParseUint(h.Get(headerLast), 10, 64); err != nil {
			return 0, fmt.Errorf("%w: the writer's answer: %w", jsapi.ErrOutcomeUnknown, err)
		}
		return last, nil
	case outcomeStopped:
		return 0, errStopped
	case outcomeConflict:
		return 0, fmt.Errorf("%w: %s", jsapi.ErrConflict, detail)
	case outcomeUnknown:
		return 0, fmt.Errorf("%w: %s", jsapi.ErrOutcomeUnknown, detail)
	default:
		return 0, domain.Unavailable("the event log cannot be written at the moment: %s", detail)
	}
}

// answerOthers handles the requests of other replicas until stop is called. stop waits for those
// under way.
func (j *Journal) answerOthers(ctx context.Context, q *queue) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	slots := make(chan struct{}, maxRemote)
	// A queue, so that only one writer gets a request while two believe that they hold the lease.
	sub, err := j.cfg.Conn.QueueSubscribe(
		streams.AppendSubject(q.group.number), "writer", func(msg *nats.Msg) {
			slots <- struct{}{}
			tasks.Go(func() {
				defer func() { <-slots }()
				j.answerAppend(ctx, q, msg)
			})
		},
	)
	if err != nil {
		cancel()
		return nil, err
	}
	drained := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(drained) })
	stop = func() {
		cancel()
		// Requests that are here already are answered, so that their senders do not wait in vain.
		// But a subscription that is drained while the client reconnects stays at the broker, which
		// would send it requests that nobody gets.
		end := sub.Unsubscribe
		if q.lease.Held() && j.cfg.Conn.FlushTimeout(drainTimeout) == nil {
			end = sub.Drain
		}
		if end() == nil {
			<-drained
		}
		tasks.Wait()
	}
	if err := streams.AwaitSubscribed(ctx, j.cfg.Conn, j.cfg.Logger); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// answerAppend handles one request of another replica.
func (j *Journal) answerAppend(ctx context.Context, q *queue, msg *nats.Msg) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	answer := nats.NewMsg(msg.Reply)
	last, err := q.answer(ctx, msg)
	switch {
	case err == nil:
		answer.Header.Set(headerLast, strconv.FormatUint(last, 10))
	case errors.Is(err, jsapi.ErrOutcomeUnknown):
		answer.Header.Set(headerError, outcomeUnknown)
	case errors.Is(err, errStopped), errors.Is(err, context.Canceled):
		// The writer stops: nothing was stored.
		answer.Header.Set(headerError, outcomeStopped)
	case errors.Is(err, jsapi.ErrConflict):
		answer.Header.Set(headerError, outcomeConflict)
	default:
		answer.Header.Set(headerError, outcomeFailed)
	}
	if err != nil {
		answer.Header.Set(headerDetail, err.Error())
	}
	if err := msg.RespondMsg(answer); err != nil {
		j.cfg.Logger.Warn("append not answered", "group", q.group.number, "error", err)
	}
}

// answer stores the records of another replica.
func (q *queue) answer(ctx context.Context, msg *nats.Msg) (last uint64, err error) {
	req, err := parseRequest(msg)
	if err != nil {
		return 0, err
	}
	return q.append(ctx, req)
}

// parseRequest reads an append of another replica.
func parseRequest(msg *nats.Msg) (*request, error) {
	hub, ok := domain.ParseHubID(msg.Header.Get(headerHub))
	if !ok {
		return nil, fmt.Errorf("%s: %q is not a hub id", headerHub, msg.Header.Get(headerHub))
	}
	c, err := Unmarshal(msg.Data)
	if err != nil {
		return nil, err
	}
	req := &request{hub: hub, expected: AnyEnd, records: c.Records}
	if text := msg.Header.Get(headerExpected); text != "" {
		if req.expected, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", headerExpected, err)
		}
	}
	return req, nil
}
