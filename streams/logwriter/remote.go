package logwriter

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
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// A request of another replica is a message on streams.AppendSubject with the records as the commit
// that journal.Marshal makes of them, and these headers. Its answer has only headers.
const (
	headerHub      = "Hubcloud-Hub"
	headerAwait    = "Hubcloud-Await"          // instead of records: wait for the view up to this sequence
	headerFlush    = "Hubcloud-Flush"          // instead of records: wait for all views of the group
	headerExpected = "Hubcloud-Expected-Event" // absent for a command
	headerLast     = "Hubcloud-Last"           // the sequence of the last record
	headerError    = "Hubcloud-Error"          // one of the outcomes below
	headerDetail   = "Hubcloud-Detail"         // the error's text
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

// send sends a request to the replica that writes the group's journal.
func (r *Router) send(ctx context.Context, g *group, req *request) (last uint64, err error) {
	msg := nats.NewMsg(streams.AppendSubject(g.number))
	msg.Header.Set(headerHub, string(req.hub))
	if req.conditional {
		msg.Header.Set(headerExpected, strconv.FormatUint(req.expected, 10))
	}
	if msg.Data, err = marshalRecords(req); err != nil {
		return 0, err
	}
	answer, err := r.cfg.Conns.Cloud.RequestMsgWithContext(ctx, msg)
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
	c, err := journal.NewCommit(
		1, 1, records, func(domain.HubID) (journal.Tip, bool) { return journal.Tip{}, false },
	)
	if err != nil {
		return nil, err
	}
	return journal.Marshal(&c)
}

// awaitTimeout bounds the wait of another replica for a view.
const awaitTimeout = time.Second

// awaitRemotely asks the replica that writes the group's views to complete one.
func (r *Router) awaitRemotely(
	ctx context.Context, g *group, hub domain.HubID, seq uint64,
) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	for pause := firstRoutePause; ; pause = min(2*pause, maxRoutePause) {
		msg := nats.NewMsg(streams.AppendSubject(g.number))
		msg.Header.Set(headerHub, string(hub))
		msg.Header.Set(headerAwait, strconv.FormatUint(seq, 10))
		answer, err := r.cfg.Conns.Cloud.RequestMsgWithContext(ctx, msg)
		if err == nil {
			_, err = parseAnswer(answer.Header)
		}
		if err == nil || errors.Is(err, nats.ErrConnectionClosed) || !streams.Sleep(ctx, pause) {
			return err
		}
	}
}

// FlushViews completes the streams of all hub logs of an installation with that many groups: they
// have everything that was stored before the call. It is for programs beside the service. Where no
// replica writes a group's journal, its streams stay as they are. Errors are those of the broker
// and ctx.
func FlushViews(ctx context.Context, cloud *nats.Conn, groups int) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	for group := range groups {
		msg := nats.NewMsg(streams.AppendSubject(group))
		msg.Header.Set(headerFlush, "1")
		answer, err := cloud.RequestMsgWithContext(ctx, msg)
		if errors.Is(err, nats.ErrNoResponders) {
			continue
		}
		if err == nil {
			_, err = parseAnswer(answer.Header)
		}
		if err != nil && !errors.Is(err, errStopped) {
			return fmt.Errorf("complete the hub logs of group %d: %w", group, err)
		}
	}
	return nil
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
func (r *Router) answerOthers(ctx context.Context, w *writer) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	slots := make(chan struct{}, maxRemote)
	// A queue, so that only one writer gets a request while two believe that they hold the lease.
	sub, err := r.cfg.Conns.Cloud.QueueSubscribe(
		streams.AppendSubject(w.group.number), "writer", func(msg *nats.Msg) {
			slots <- struct{}{}
			tasks.Go(func() {
				defer func() { <-slots }()
				r.answerAppend(ctx, w, msg)
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
		// Requests that are here already are answered, so that their senders do not wait in vain. But
		// a subscription that is drained while the client reconnects stays at the broker, which would
		// send it requests that nobody gets.
		end := sub.Unsubscribe
		if w.held() && r.cfg.Conns.Cloud.FlushTimeout(drainTimeout) == nil {
			end = sub.Drain
		}
		if end() == nil {
			<-drained
		}
		tasks.Wait()
	}
	if err := streams.AwaitSubscribed(ctx, r.cfg.Conns.Cloud, r.cfg.Logger); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// answerAppend handles one request of another replica.
func (r *Router) answerAppend(ctx context.Context, w *writer, msg *nats.Msg) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	answer := nats.NewMsg(msg.Reply)
	last, err := w.answer(ctx, msg)
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
		r.cfg.Logger.Warn("append not answered", "group", w.group.number, "error", err)
	}
}

// answer does what a request of another replica asks for.
func (w *writer) answer(ctx context.Context, msg *nats.Msg) (last uint64, err error) {
	if msg.Header.Get(headerFlush) != "" {
		return 0, w.views.Flush(ctx)
	}
	hub, ok := domain.ParseHubID(msg.Header.Get(headerHub))
	if !ok {
		return 0, fmt.Errorf("%s: %q is not a hub id", headerHub, msg.Header.Get(headerHub))
	}
	if text := msg.Header.Get(headerAwait); text != "" {
		if last, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, fmt.Errorf("%s: %w", headerAwait, err)
		}
		// Not for long, so that views that are away do not take the place of appends: the other
		// replica asks again.
		ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
		defer cancel()
		return last, w.views.Await(ctx, hub, last)
	}
	req, err := parseRequest(hub, msg)
	if err != nil {
		return 0, err
	}
	return w.append(ctx, req)
}

// parseRequest reads an append of another replica.
func parseRequest(hub domain.HubID, msg *nats.Msg) (*request, error) {
	c, err := journal.Unmarshal(msg.Data)
	if err != nil {
		return nil, err
	}
	req := &request{hub: hub, records: c.Records}
	if text := msg.Header.Get(headerExpected); text != "" {
		req.conditional = true
		if req.expected, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", headerExpected, err)
		}
	}
	return req, nil
}
