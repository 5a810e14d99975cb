package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

const (
	// answerPart is about how much of an answer goes out in one write, and answerPartTight so when
	// memory for answers is short.
	answerPart      = 64 << 10
	answerPartTight = 16 << 10
	// answerFree is how much of an answer is not counted: a connection that is only open takes
	// more.
	answerFree = 4 << 10
	// answerTimeout is how long a client may take over an answer whose parts it reads in time.
	answerTimeout = 2 * time.Minute
)

// answers counts the bytes of answers that are on their way to clients: what clients that do not
// read hold back. No key has more than perKey, and no organization more than half of what the
// others leave of all, so that several together cannot use it up. An organization that has nothing
// on its way always gets one answer, or one part of it, unless that would make twice as much as
// all.
type answers struct {
	perKey, all int64
	inUse       prometheus.Gauge

	mu   sync.Mutex
	used int64
	by   map[string]int64 // by key id, organization and address
}

func newAnswers(perKey, all int64, inUse prometheus.Gauge) *answers {
	return &answers{perKey: perKey, all: all, inUse: inUse, by: map[string]int64{}}
}

// answerOwner is who an answer's bytes count for: a key and its organization, or else an address.
// All addresses together count as one organization.
type answerOwner struct{ key, org string }

func (x *exchange) answerOwner() answerOwner {
	if x.key.ID != "" {
		return answerOwner{x.key.ID, "organization " + x.key.OrgID}
	}
	return answerOwner{"address " + addressBlock(x.remote).String(), addresses}
}

// addresses stands for an organization where there is no key.
const addresses = "addresses"

// errAnswers says that clients of a key hold back as much as they may.
var errAnswers = &domain.Error{Code: domain.CodeRateLimited, RetryAfter: time.Second,
	Message: "too much is on its way to clients of this API key that do not read it: read the " +
		"answers, or ask for smaller pages"}

// acquire counts n bytes more for an owner.
func (a *answers) acquire(o answerOwner, n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.by[o.key]+n > a.perKey:
		return errAnswers
	case a.by[o.org]+n <= a.share(o), a.by[o.org] == 0 && o.org != addresses && a.used+n <= 2*a.all:
		a.count(o, n)
		return nil
	case o.org == addresses || a.by[o.org] == 0:
		return domain.Unavailable(
			"too many answers are on their way to clients that do not read them",
		)
	}
	return errAnswers
}

// share returns how much an owner's organization may have: half of what the others leave.
func (a *answers) share(o answerOwner) int64 {
	return (a.all - (a.used - a.by[o.org])) / 2
}

// adjust counts n bytes more, or fewer, of what cannot be refused any more.
func (a *answers) adjust(o answerOwner, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(o, n)
}

func (a *answers) count(o answerOwner, n int64) {
	a.used += n
	a.inUse.Set(float64(a.used))
	for _, id := range []string{o.key, o.org} {
		if a.by[id] += n; a.by[id] == 0 {
			delete(a.by, id)
		}
	}
}

// part returns how large the next part of an owner's answer should be: small once half of what the
// owner may have is used up.
func (a *answers) part(o answerOwner) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by[o.key] > a.perKey/2 || a.used > a.all/2 || a.by[o.org] > a.share(o)/2 {
		return answerPartTight
	}
	return answerPart
}

// Reserve must be called before an answer of n bytes is begun that is written whole. It returns an
// error when clients hold back so much already that this one must be refused. What is reserved is
// given back when the request ends.
func (x *exchange) Reserve(n int) error {
	if n <= answerFree {
		return nil
	}
	x.owner = x.answerOwner()
	if err := x.api.answers.acquire(x.owner, int64(n)); err != nil {
		x.api.metrics.limited.answers.Inc()
		return err
	}
	x.reserved += int64(n)
	return nil
}

// reserveExactly makes what is reserved n bytes, whatever the limits.
func (x *exchange) reserveExactly(n int) {
	x.api.answers.adjust(x.owner, int64(n)-x.reserved)
	x.reserved = int64(n)
}

// unreserve returns the reserved bytes.
func (x *exchange) unreserve() {
	if x.reserved > 0 {
		x.reserveExactly(0)
	}
}

// extendAnswer sets the deadline of the next write: writeTimeout from now, and for all writes of
// an answer together answerTimeout.
func (x *exchange) extendAnswer(control *http.ResponseController, begun time.Time) {
	deadline := time.Now().Add(writeTimeout)
	if last := begun.Add(answerTimeout); deadline.After(last) {
		deadline = last
	}
	_ = control.SetWriteDeadline(deadline) // a connection that is gone shows at the write
}

// writeParts writes what is large part by part, each with a deadline of its own.
func (x *exchange) writeParts(p []byte) (written int, err error) {
	control, begun := http.NewResponseController(x.w), time.Now()
	for len(p) > 0 && err == nil {
		n := min(len(p), answerPart)
		x.extendAnswer(control, begun)
		n, err = x.w.Write(p[:n])
		written, p = written+n, p[n:]
	}
	return written, err
}

// page writes one page of events, part by part: what is written is all that is held of it.
type page struct {
	x       *exchange
	hub     domain.HubID
	control *http.ResponseController
	begun   time.Time
	// left is how many events the client still wants, next the cursor behind the last one that is
	// out.
	left int
	next string
	more bool
	// out says that an event is out, failed that the client is gone or does not read.
	out, failed bool
}

// writePage answers with a page of which part is read already. What goes wrong once the answer has
// begun ends the page early: the client is told that there is more, and what is wrong when it asks
// for that.
func (x *exchange) writePage(hub domain.HubID, limit int, part domain.EventPage) error {
	x.owner = x.answerOwner()
	if err := x.Reserve(partBytes(part)); err != nil {
		return err
	}
	if !part.HasMore || len(part.Events) >= limit {
		x.writeEvents(part)
		return nil
	}
	header := x.w.Header()
	header["Content-Type"] = contentTypeJSON
	x.WriteHeader(http.StatusOK)
	p := page{
		x:       x,
		hub:     hub,
		control: http.NewResponseController(x.w),
		begun:   time.Now(),
		left:    limit,
	}
	p.write([]byte(`{"data":[`), &part)
	for p.more && p.left > 0 && !p.over() && p.read(&part) {
		p.write(nil, &part)
	}
	p.send(appendPageEnd(nil, p.next, p.more))
	return nil
}

// over reports whether the page is to end here, with what is out.
func (p *page) over() bool {
	return p.failed || time.Since(p.begun) > managementTimeout || isClosed(p.x.api.Draining) ||
		isClosed(p.x.key.Revoked) ||
		p.x.api.confirm(p.x.ctx) != nil
}

// read reads the next part.
func (p *page) read(part *domain.EventPage) bool {
	x := p.x
	size := x.api.answers.part(x.owner)
	x.reserveExactly(0)
	if err := x.Reserve(size); err != nil {
		return false
	}
	got, err := x.api.Events.Part(x.ctx, p.hub, p.next, p.left, size, 0)
	if err != nil {
		if x.ctx.Err() == nil && domain.CodeOf(err) == domain.CodeInternal {
			x.err = err
		}
		return false
	}
	x.reserveExactly(partBytes(got))
	*part = got
	return true
}

// write writes a part, after start. It lets go of the part before it waits for the client: the
// part's slice holds more of the cache than the part.
func (p *page) write(start []byte, part *domain.EventPage) {
	p.left -= len(part.Events)
	p.next, p.more = part.Next, part.HasMore
	if len(part.Events) == 1 && len(part.Events[0].Envelope) >= answerPartTight/2 {
		// Shared with whoever reads at the same place: a copy would be this client's alone.
		envelope := part.Events[0].Envelope
		part.Events = nil
		if p.out {
			start = append(start, ',')
		}
		p.out = true
		p.send(start)
		p.send(envelope)
		return
	}
	buf := p.x.api.buffers.get()
	defer p.x.api.buffers.put(buf)
	body := append(*buf, start...)
	for i := range part.Events {
		if p.out {
			body = append(body, ',')
		}
		p.out = true
		body = append(body, part.Events[i].Envelope...)
	}
	part.Events = nil
	*buf = body
	p.send(body)
}

// send writes b, unless a write has failed.
func (p *page) send(b []byte) {
	if p.failed || len(b) == 0 {
		return
	}
	p.x.extendAnswer(p.control, p.begun)
	_, err := p.x.Write(b)
	p.failed = err != nil
}

// partBytes returns how much of a client's answer a part is.
func partBytes(part domain.EventPage) int {
	n := len(`{"data":[],"next_cursor":"","has_more":false}`)
	for i := range part.Events {
		n += len(part.Events[i].Envelope) + 1
	}
	return n
}
