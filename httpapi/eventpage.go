package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"hubcloud/domain"
)

// writePage answers with a page of at most limit events, of which first has been read already. A
// page that is larger than first is read and written part by part. An error after the first write
// ends the page early, with has_more true: the client gets the error when it reads on.
//
// writePage returns the next_cursor of the page and how far it is behind; "" if the client has
// left.
func (req *request) writePage(
	events feed, limit int, first domain.EventPage,
) (next string, lag domain.FeedLag, err error) {
	req.waitForSearch(&first)
	if err := req.Reserve(pageBytes(first)); err != nil {
		return "", lag, err
	}
	if !first.HasMore || len(first.Events) >= limit {
		req.writeWholePage(first)
		return first.Next, first.Lag, nil
	}
	header := req.w.Header()
	header["Content-Type"] = contentTypeJSON
	req.WriteHeader(http.StatusOK)
	p := pageWriter{
		req:     req,
		events:  events,
		control: http.NewResponseController(req.w),
		begun:   time.Now(),
		left:    limit,
	}
	part := first
	p.write([]byte(`{"data":[`), &part)
	for p.hasMore && p.left > 0 && !p.mustEnd() && p.read(&part) {
		p.write(nil, &part)
	}
	p.send(appendPageEnd(nil, p.next, p.hasMore))
	if p.failed {
		return "", lag, nil
	}
	return p.next, p.lag, nil
}

// writeWholePage answers with a page in one write. Envelopes are encoded already.
func (req *request) writeWholePage(page domain.EventPage) {
	buf := req.api.buffers.get()
	defer req.api.buffers.put(buf)
	body := append(*buf, `{"data":[`...)
	for i := range page.Events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, page.Events[i].Envelope...)
	}
	body = appendPageEnd(body, page.Next, page.HasMore)
	*buf = body
	req.writeBody(http.StatusOK, body)
}

// appendPageEnd appends what follows a page's events.
func appendPageEnd(dst []byte, next string, hasMore bool) []byte {
	dst = append(dst, `],"next_cursor":"`...)
	dst = append(dst, next...) // a cursor is letters and digits: nothing to escape
	dst = append(dst, `","has_more":`...)
	return append(strconv.AppendBool(dst, hasMore), '}')
}

// pageBytes returns the size of a page's JSON.
func pageBytes(page domain.EventPage) int {
	n := len(`{"data":[],"next_cursor":"","has_more":false}`)
	for i := range page.Events {
		n += len(page.Events[i].Envelope) + 1
	}
	return n
}

// maxSearched is about how many events a page compares with its filter that it does not select. Then
// the page ends, with has_more: the client goes on from its next_cursor, within its rate.
const maxSearched = 20_000

// searchTime is about how long it takes to compare an event with a filter.
const searchTime = 5 * time.Microsecond

// pageWriter reads and writes one page of events part by part, so that no more than one part is in
// memory.
type pageWriter struct {
	req     *request
	events  feed
	control *http.ResponseController
	begun   time.Time
	// left is how many events the client still wants.
	left int
	// next is the cursor after the last event written.
	next    string
	lag     domain.FeedLag
	hasMore bool
	// searched is how many events the filter has not selected.
	searched int
	// wroteEvent reports that an event was written, failed that a write failed.
	wroteEvent, failed bool
}

// searchedFor returns how many events were compared with the filter for a part and not selected.
func searchedFor(part *domain.EventPage) int { return max(0, part.Scanned-len(part.Events)) }

// waitForSearch waits after a part was read until the organization may search more.
func (req *request) waitForSearch(part *domain.EventPage) {
	searched := searchedFor(part)
	if searched == 0 {
		return
	}
	took := time.Duration(searched) * searchTime
	if wait := req.api.spendTime(req.key.Reach.OrgID, took, 0); wait > 0 {
		select {
		case <-req.ctx.Done():
		case <-time.After(wait):
		}
	}
}

// mustEnd reports whether the page must end early.
func (p *pageWriter) mustEnd() bool {
	return p.failed || time.Since(p.begun) > managementTimeout || p.searched >= maxSearched ||
		isClosed(p.req.api.Draining) || p.req.keyEnded() ||
		p.req.api.awaitFresh(p.req.ctx) != nil
}

// read reads the next part. It returns false if there is none to be had now.
func (p *pageWriter) read(part *domain.EventPage) bool {
	req := p.req
	size := req.chunkSize()
	req.reserveExactly(0)
	if err := req.Reserve(size); err != nil {
		return false
	}
	got, err := p.events.Part(req.ctx, p.next, p.left, size, 0)
	if err != nil {
		if req.ctx.Err() == nil && domain.CodeOf(err) == domain.CodeInternal {
			req.err = err
		}
		return false
	}
	req.waitForSearch(&got)
	req.reserveExactly(pageBytes(got))
	*part = got
	return true
}

// write writes a part, after start. It drops its reference to the part's events before it waits for
// the client: the slice keeps more of the event cache alive than its events.
func (p *pageWriter) write(start []byte, part *domain.EventPage) {
	p.left -= len(part.Events)
	p.searched += searchedFor(part)
	p.next, p.lag, p.hasMore = part.Next, part.Lag, part.HasMore
	if len(part.Events) == 1 && len(part.Events[0].Envelope) >= responseChunkTight/2 {
		// A large envelope is shared with other readers at the same position; do not copy it.
		envelope := part.Events[0].Envelope
		part.Events = nil
		if p.wroteEvent {
			start = append(start, ',')
		}
		p.wroteEvent = true
		p.send(start)
		p.send(envelope)
		return
	}
	buf := p.req.api.buffers.get()
	defer p.req.api.buffers.put(buf)
	body := append(*buf, start...)
	for i := range part.Events {
		if p.wroteEvent {
			body = append(body, ',')
		}
		p.wroteEvent = true
		body = append(body, part.Events[i].Envelope...)
	}
	part.Events = nil
	*buf = body
	p.send(body)
}

// send writes b, unless an earlier write failed.
func (p *pageWriter) send(b []byte) {
	if p.failed || len(b) == 0 {
		return
	}
	p.req.extendDeadline(p.control, p.begun)
	_, err := p.req.Write(b)
	p.failed = err != nil
}
