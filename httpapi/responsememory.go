package httpapi

import (
	"net/http"
	"time"

	"hubcloud/streams/shares"
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

// spender returns whose account the request is on: a key and its organization, or an address.
func (req *request) spender() shares.Spender {
	if req.key.ID != "" {
		return shares.Spender{Org: req.key.Reach.OrgID, ID: req.key.ID}
	}
	return shares.Spender{ID: shares.AddressBlock(req.remote).String()}
}

// chunkSize returns how large the next chunk of the request's response should be: small once half
// of what its spender, or the spender's organization, may have unread is unread.
func (req *request) chunkSize() int {
	memory := req.api.memory
	held, org, share := memory.Held(req.spender())
	if held > memory.Limits().PerID/2 || org > share/2 {
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
	if _, err := req.api.memory.Take(req.spender(), int64(n)); err != nil {
		req.api.metrics.limited.answers.Inc()
		return err
	}
	req.reserved += int64(n)
	return nil
}

// reserveExactly makes the request's reservation n bytes, without regard to the limits.
func (req *request) reserveExactly(n int) {
	req.api.memory.Adjust(req.spender(), int64(n)-req.reserved)
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
