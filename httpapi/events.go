package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"hubcloud/domain"
)

// The contract's bounds on a read of events.
const (
	maxEventPage     = 500
	defaultEventPage = 100
	maxEventWait     = 60 // seconds
)

func (a *api) readEvents(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	q, err := readQuery(x.r.URL.RawQuery, "after", "limit", "wait")
	if err != nil {
		return err
	}
	after, _ := q.get("after")
	limit, err := q.integer("limit", 1, maxEventPage, defaultEventPage)
	if err != nil {
		return err
	}
	wait, err := q.integer("wait", 0, maxEventWait, 0)
	if err != nil {
		return err
	}
	if err := a.hold(x); err != nil {
		return err
	}
	defer a.streams.release(x.key.ID)
	x.owner = x.answerOwner()
	size := a.answers.part(x.owner)
	var part domain.EventPage
	if wait == 0 {
		part, err = a.Events.Part(x.ctx, hub, after, limit, size, 0)
	} else {
		part, err = a.waitForEvents(x, hub, after, limit, size, time.Duration(wait)*time.Second)
	}
	if err != nil {
		return err
	}
	return x.writePage(hub, limit, part)
}

// waitForEvents reads a page that may be long in coming. It answers early, with what there is, when
// the service is stopping, with 401 when the key is revoked in the meantime, and with 503 when this
// replica is cut off from the broker.
func (a *api) waitForEvents(
	x *exchange, hub domain.HubID, after string, limit, size int, wait time.Duration,
) (domain.EventPage, error) {
	a.metrics.longPolls.Inc()
	defer a.metrics.longPolls.Dec()
	// The answer's own time begins after the wait.
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(wait + writeTimeout))
	ctx, cancel := context.WithCancel(x.ctx)
	watched, lost := make(chan struct{}), a.lost()
	go func() {
		defer close(watched)
		select {
		case <-a.Draining:
		case <-x.key.Revoked:
		case <-lost:
		case <-ctx.Done():
		}
		cancel()
	}()
	page, err := a.Events.Part(ctx, hub, after, limit, size, wait)
	cancel()
	<-watched
	if err := x.ctx.Err(); err != nil {
		return domain.EventPage{}, err
	}
	// Whoever waits at a replica that is cut off is sent to another. A process that stood still
	// asks before it answers.
	if err := a.confirm(x.ctx); err != nil {
		return domain.EventPage{}, err
	}
	if isClosed(x.key.Revoked) {
		return domain.EventPage{}, errBadKey
	}
	return page, err
}

// writeEvents answers with a page that is one part. Its envelopes are texts already: they are put
// one behind the other, and go out in one write.
func (x *exchange) writeEvents(page domain.EventPage) {
	buf := x.api.buffers.get()
	defer x.api.buffers.put(buf)
	body := append(*buf, `{"data":[`...)
	for i := range page.Events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, page.Events[i].Envelope...)
	}
	body = appendPageEnd(body, page.Next, page.HasMore)
	*buf = body
	x.writeBody(http.StatusOK, body)
}

// appendPageEnd appends what follows a page's events.
func appendPageEnd(dst []byte, next string, more bool) []byte {
	dst = append(dst, `],"next_cursor":"`...)
	dst = append(dst, next...) // a cursor is letters and digits: nothing to escape
	dst = append(dst, `","has_more":`...)
	return append(strconv.AppendBool(dst, more), '}')
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
