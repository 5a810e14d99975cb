package httpapi

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/oklog/ulid/v2"

	"hubcloud/domain"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

// managementTimeout is how long a request that is not long-lived may take. It is longer than the 15
// seconds for which other parts of the service wait for a leader election. Past it the answer is
// service_unavailable.
const managementTimeout = 20 * time.Second

// request is one HTTP request and its answer. It is also the http.ResponseWriter of the request, so
// that it can count what is written.
type request struct {
	api  *api
	w    http.ResponseWriter
	http *http.Request
	// ctx is the context of http with the span and the deadline of the request. It is a field, as
	// in http.Request: the request lives as long as its context, and Request.WithContext would copy
	// the http.Request each time.
	ctx    context.Context
	id     string
	start  time.Time
	remote netip.Addr
	route  *route
	span   telemetry.Span
	// key is the API key of the caller, once it has been verified.
	key domain.KeyAccess
	// keyEnds is when the key, or the secret that the caller has, stops working; zero for never.
	keyEnds time.Time

	// reserved is how many bytes of response memory the request holds.
	reserved int64
	// compressor compresses what Write writes, if it is not nil.
	compressor *compressor

	status int
	bytes  int64
	// err is the cause of a failure, for the log.
	err error
	// ended is why an event stream ended, and events how many were sent, for the log.
	ended  string
	events int
	// values holds the values of the header fields that setHeader sets, in one allocation.
	values [headerSlots]string
}

// Values of header fields, which all answers share and must not modify.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
)

// begin starts the handling of a request and assigns its id.
func (a *api) begin(w http.ResponseWriter, r *http.Request) *request {
	now := a.Now()
	req := &request{
		api:    a,
		w:      w,
		http:   r,
		ctx:    r.Context(),
		id:     newRequestID(now),
		start:  now,
		remote: a.clientAddress(r),
	}
	header := w.Header() // a page or document that may be stored sets its own Cache-Control
	header["Cache-Control"], header["X-Content-Type-Options"] = noStore, noSniff
	req.setHeader(slotRequestID, "X-Request-Id", req.id)
	req.limitBodyTime()
	a.metrics.inFlight.Inc()
	return req
}

// newRequestID returns a new ULID. It must be unique, not secret.
func newRequestID(now time.Time) string {
	id := ulid.ULID{}
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	binary.BigEndian.PutUint16(id[6:], uint16(rand.Uint32()))
	if err := id.SetTime(ulid.Timestamp(now)); err != nil {
		panic(fmt.Sprintf("httpapi: the clock is beyond the year 10889: %v", err))
	}
	return id.String()
}

// headerSlot is the place of a header field's value in request.values.
type headerSlot int

const (
	slotRequestID headerSlot = iota
	slotRateLimit
	slotRateRemaining
	slotRateReset
	slotRatePolicy
	headerSlots
)

// setHeader sets a header field in exactly that spelling. Each field must have a slot of its own.
func (req *request) setHeader(slot headerSlot, name, value string) {
	req.values[slot] = value
	req.w.Header()[name] = req.values[slot : slot+1 : slot+1]
}

// Header, WriteHeader and Write implement http.ResponseWriter; Unwrap gives http.ResponseController
// access to the server's own ResponseWriter.
func (req *request) Header() http.Header         { return req.w.Header() }
func (req *request) Unwrap() http.ResponseWriter { return req.w }

func (req *request) WriteHeader(status int) {
	if req.status == 0 {
		req.status = status
		if req.w.Header()["Content-Length"] == nil {
			req.compressParts(status)
		}
	}
	req.w.WriteHeader(status)
}

func (req *request) Write(p []byte) (int, error) {
	if req.status == 0 {
		req.WriteHeader(http.StatusOK)
	}
	if req.compressor != nil {
		if err := req.writeCompressed(p, false); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return req.writeRaw(p)
}

// writeRaw writes p as it is.
func (req *request) writeRaw(p []byte) (n int, err error) {
	if len(p) > responseChunk {
		n, err = req.writeChunks(p)
	} else {
		n, err = req.w.Write(p)
	}
	req.bytes += int64(n)
	return n, err
}

// SetSendBuffer bounds the kernel's send buffer of the request's connection.
func (req *request) SetSendBuffer(bytes int) {
	c, ok := req.http.Context().Value(connKey{}).(interface{ SetWriteBuffer(bytes int) error })
	if ok {
		_ = c.SetWriteBuffer(bytes) // a closed connection fails at the next write
	}
}

// ServeHTTP handles a request that the router matched to the route.
func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := w.(*request) // the middleware track passes nothing else
	req.route = rt
	if !rt.quiet {
		req.ctx, req.span = rt.api.Tracer.StartRequest(r)
	}
	err := rt.run(req)
	req.endCompression(err == nil)
	if err != nil {
		req.writeError(err)
	}
}

// run checks what the route demands, in the documented order of errors, and calls its handler.
func (rt *route) run(req *request) error {
	began := time.Now() // by the clock of deadlines; req.start is of Config.Now
	switch rt.access {
	case forKey:
		if err := rt.api.authenticate(req); err != nil {
			return err
		}
		if err := req.countForKey(); err != nil {
			return err
		}
		if err := requireScope(req.key, rt.scope); err != nil {
			return err
		}
		if err := checkNames(req.http.URL.RawQuery, rt.query); err != nil {
			return err
		}
	case forProbe:
		a := rt.api.probeRates.Take(shares.AddressBlock(req.remote), req.start)
		if !a.Granted {
			return domain.RateLimited(a.Next, "too many probes; a few a second are enough")
		}
	case forAddress:
		if err := req.countForAddress(); err != nil {
			return err
		}
	}
	if !rt.readsBody {
		if err := req.discardBody(); err != nil {
			return err
		}
	}
	if rt.asksHub || rt.access == forAddress {
		req.ctx = telemetry.WithRequest(req.ctx, req.id)
	}
	if !rt.longLived {
		limit := rt.timeLimit()
		if rt.asksHub { // the server's write timeout allows for managementTimeout only
			deadline := time.Now().Add(limit + writeTimeout)
			// After an error the connection is closed, and the write of the answer fails.
			_ = http.NewResponseController(req.w).SetWriteDeadline(deadline)
		}
		ctx, cancel := context.WithTimeout(req.ctx, limit-time.Since(began))
		defer cancel()
		req.ctx = ctx
	}
	return rt.handle(req)
}

// timeLimit returns how long a request may take that is not long-lived. A command may wait for the
// hub twice: for the answer to a concurrent duplicate, possibly at another replica, and for its
// own.
func (rt *route) timeLimit() time.Duration {
	if !rt.asksHub {
		return managementTimeout
	}
	return managementTimeout + 2*rt.api.HubTimeout
}

// end recovers from a panic of the handler, answers with an error if there is no answer yet, and
// logs and counts the request. The caller of begin must defer it.
func (req *request) end() {
	recovered := recover()
	req.endCompression(false)
	req.releaseMemory()
	if recovered != nil && recovered != http.ErrAbortHandler {
		req.err = fmt.Errorf("panic: %v\n%s", recovered, debug.Stack())
		if req.status == 0 {
			req.writeError(req.err)
			recovered = nil
		} else {
			// Part of the answer has been sent: only a broken connection shows that it is
			// incomplete.
			recovered = http.ErrAbortHandler
		}
	}
	req.report()
	if recovered != nil {
		panic(recovered)
	}
}

// origin returns the origin of the commands that this request issues.
func (req *request) origin() domain.Origin {
	return domain.Origin{
		At:        req.start,
		Actor:     domain.Actor{Kind: domain.ActorKey, ID: req.key.ID},
		RequestID: req.id,
		Address:   req.remote.String(),
	}
}
