package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

const (
	// responseChunk is about how much of a response goes out in one write, and responseChunkTight
	// the same when response memory is short.
	responseChunk      = 64 << 10
	responseChunkTight = 16 << 10
	// uncountedBytes is the size up to which a response is not counted: an open connection alone
	// takes more.
	uncountedBytes = 4 << 10
	// responseTimeout is how long a client may take for a response of several chunks, each of which
	// it reads in time.
	responseTimeout = 2 * time.Minute
)

// responseMemory bounds the bytes of responses on their way to clients: the memory that clients
// hold by not reading. A key gets at most perKey, and an organization at most half of what the
// others leave of all, so that several organizations together cannot use it up. An organization
// that holds nothing always gets one response, or one chunk of it, unless the total would exceed
// twice all.
type responseMemory struct {
	perKey, all int64
	inUse       prometheus.Gauge

	mu      sync.Mutex
	used    int64
	usedFor map[string]int64 // by key id, organization and address
}

func newResponseMemory(perKey, all int64, inUse prometheus.Gauge) *responseMemory {
	return &responseMemory{perKey: perKey, all: all, inUse: inUse, usedFor: map[string]int64{}}
}

// memoryOwner is whose account a response's bytes are on: a key and its organization, or an
// address. All addresses together count as one organization.
type memoryOwner struct{ key, org string }

func (req *request) memoryOwner() memoryOwner {
	if req.key.ID != "" {
		return memoryOwner{req.key.ID, "organization " + req.key.OrgID}
	}
	return memoryOwner{"address " + addressBlock(req.remote).String(), addresses}
}

// addresses stands for the organization of requests without a key.
const addresses = "addresses"

// errResponseMemory is the error of a key that has used up its response memory.
var errResponseMemory = domain.RateLimited(
	time.Second,
	"clients of this API key leave too many responses unread; read the responses, or "+
		"request smaller pages",
)

// acquire counts n more bytes for an owner.
func (m *responseMemory) acquire(o memoryOwner, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.usedFor[o.key]+n > m.perKey:
		return errResponseMemory
	case m.usedFor[o.org]+n <= m.share(o):
		m.count(o, n)
		return nil
	case m.usedFor[o.org] == 0 && o.org != addresses && m.used+n <= 2*m.all:
		m.count(o, n)
		return nil
	case o.org == addresses || m.usedFor[o.org] == 0:
		return domain.Unavailable("clients leave too many responses unread")
	}
	return errResponseMemory
}

// share returns how many bytes an owner's organization may have: half of what the others leave.
func (m *responseMemory) share(o memoryOwner) int64 {
	return (m.all - (m.used - m.usedFor[o.org])) / 2
}

// adjust counts n more bytes, or fewer if n is negative, without regard to the limits.
func (m *responseMemory) adjust(o memoryOwner, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(o, n)
}

func (m *responseMemory) count(o memoryOwner, n int64) {
	m.used += n
	m.inUse.Set(float64(m.used))
	for _, id := range []string{o.key, o.org} {
		if m.usedFor[id] += n; m.usedFor[id] == 0 {
			delete(m.usedFor, id)
		}
	}
}

// chunkSize returns how large the next chunk of an owner's response should be: small once half of
// what the owner may have is in use.
func (m *responseMemory) chunkSize(o memoryOwner) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.usedFor[o.key] > m.perKey/2 || m.used > m.all/2 || m.usedFor[o.org] > m.share(o)/2 {
		return responseChunkTight
	}
	return responseChunk
}

// Reserve must be called before the first write of a response of n bytes that is held in memory as
// a whole. It returns rate_limited or service_unavailable if unread responses leave too little
// memory. The request releases the memory when it ends.
func (req *request) Reserve(n int) error {
	if n <= uncountedBytes {
		return nil
	}
	req.owner = req.memoryOwner()
	if err := req.api.memory.acquire(req.owner, int64(n)); err != nil {
		req.api.metrics.limited.answers.Inc()
		return err
	}
	req.reserved += int64(n)
	return nil
}

// reserveExactly makes the request's reservation n bytes, without regard to the limits.
func (req *request) reserveExactly(n int) {
	req.api.memory.adjust(req.owner, int64(n)-req.reserved)
	req.reserved = int64(n)
}

// releaseMemory releases the reserved bytes.
func (req *request) releaseMemory() {
	if req.reserved > 0 {
		req.reserveExactly(0)
	}
}

// extendDeadline sets the deadline of the next write to writeTimeout from now, but not beyond
// responseTimeout after the response began.
func (req *request) extendDeadline(control *http.ResponseController, begun time.Time) {
	deadline := time.Now().Add(writeTimeout)
	if last := begun.Add(responseTimeout); deadline.After(last) {
		deadline = last
	}
	_ = control.SetWriteDeadline(deadline) // a closed connection fails at the write
}

// writeChunks writes p in chunks, each with a deadline of its own.
func (req *request) writeChunks(p []byte) (written int, err error) {
	control, begun := http.NewResponseController(req.w), time.Now()
	for len(p) > 0 && err == nil {
		n := min(len(p), responseChunk)
		req.extendDeadline(control, begun)
		n, err = req.w.Write(p[:n])
		written, p = written+n, p[n:]
	}
	return written, err
}
