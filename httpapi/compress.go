package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hubcloud/httpapi/docpages"
	"hubcloud/httpapi/response"
)

const (
	// minCompressed is the smallest body that is compressed: a smaller one fits in one packet.
	minCompressed = 1 << 10
	// compressorBytes is about how much memory a compressor takes.
	compressorBytes = 1 << 20
	// compressorWait is how long an answer waits for a slot. Then it goes out as it is.
	compressorWait = 10 * time.Millisecond
	// zstdWindow bounds the memory of an encoder. Events repeat within a few kilobytes.
	zstdWindow = 128 << 10
	// gzipLevel is twice as fast as the next that makes events notably smaller.
	gzipLevel = 2
)

// varyCoding is shared by all answers and must not be modified.
var varyCoding = []string{"Accept-Encoding"}

// compressors compress answers. A compressor is held across writes only by an answer of several
// parts, which reserves response memory for it.
type compressors struct {
	// slots bounds what compresses at the same time to half of the cores, which is all that clients
	// who ask for it cost others.
	slots      chan struct{}
	gzip, zstd sync.Pool
}

func newCompressors() *compressors {
	return &compressors{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// compressor is an encoder and what it has encoded.
type compressor struct {
	encoder interface {
		io.WriteCloser
		Reset(w io.Writer)
	}
	out  bytes.Buffer
	pool *sync.Pool
}

// get returns a compressor for a content coding.
func (c *compressors) get(coding string) *compressor {
	pool := &c.gzip
	if coding == "zstd" {
		pool = &c.zstd
	}
	got, ok := pool.Get().(*compressor)
	if !ok {
		got = &compressor{pool: pool}
		if coding == "zstd" {
			got.encoder, _ = zstd.NewWriter( // the options are constants
				nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
				zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow),
			)
		} else {
			got.encoder, _ = gzip.NewWriterLevel(nil, gzipLevel)
		}
	}
	got.out.Reset()
	got.encoder.Reset(&got.out)
	return got
}

// release makes a compressor available to other answers.
func (c *compressor) release() {
	if c.out.Cap() <= maxPooledBytes {
		c.encoder.Reset(io.Discard)
		c.pool.Put(c)
	}
}

// compresses reports whether answers of the route may be compressed. Only those to GET are: answers
// that show a secret once are to other methods, so nobody can guess it from how well it compresses
// beside a text of theirs (BREACH).
func (rt *route) compresses() bool {
	return rt != nil && rt.method == http.MethodGet && rt.access == forKey
}

// mayCompress sets Vary for an answer whose body may be compressed, and returns the coding to use; ""
// for none. An event stream is not compressed: its events would wait for one another.
func (req *request) mayCompress(status int) string {
	header := req.w.Header()
	if !req.route.compresses() || status != http.StatusOK || response.IsStream(header) {
		return ""
	}
	header["Vary"] = varyCoding
	return docpages.Coding(req.http.Header["Accept-Encoding"])
}

// compressWhole returns the compressed body of an answer and sets the header's Content-Encoding, or
// returns body. done must be called once the body is written.
func (req *request) compressWhole(status int, body []byte) (compressed []byte, done func()) {
	coding := req.mayCompress(status)
	if coding == "" || len(body) < minCompressed || !req.acquireSlot(compressorWait) {
		return body, func() {}
	}
	c := req.api.compressors.get(coding)
	_, _ = c.encoder.Write(body) // a buffer takes everything
	_ = c.encoder.Close()
	<-req.api.compressors.slots
	req.w.Header()["Content-Encoding"] = []string{coding}
	return c.out.Bytes(), c.release
}

// compressParts makes Write compress the body of an answer that is written in parts.
func (req *request) compressParts(status int) {
	coding := req.mayCompress(status)
	if coding == "" {
		return
	}
	if _, err := req.api.memory.Take(req.spender(), compressorBytes); err != nil {
		return // uncompressed parts need less memory
	}
	req.compressor = req.api.compressors.get(coding)
	req.w.Header()["Content-Encoding"] = []string{coding}
}

// acquireSlot waits for a slot to compress. The caller must give it back.
func (req *request) acquireSlot(wait time.Duration) bool {
	slots := req.api.compressors.slots
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// writeCompressed compresses a part of a body and writes what is ready; closing writes the rest.
func (req *request) writeCompressed(p []byte, closing bool) error {
	c := req.compressor
	req.api.compressors.slots <- struct{}{} // others give theirs back without waiting for a client
	_, err := c.encoder.Write(p)
	if err == nil && closing {
		err = c.encoder.Close()
	}
	<-req.api.compressors.slots
	if err == nil {
		_, err = req.writeRaw(c.out.Bytes())
	}
	c.out.Reset()
	return err
}

// endCompression writes what the compressor still has, if the answer is complete.
func (req *request) endCompression(complete bool) {
	c := req.compressor
	if c == nil {
		return
	}
	if complete {
		_ = req.writeCompressed(nil, true) // fails only if the client has gone
	}
	req.compressor = nil
	c.release()
	req.api.memory.Adjust(req.spender(), -compressorBytes)
}
