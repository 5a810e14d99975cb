package telemetry

import (
	"context"
	"strconv"
	"sync/atomic"
)

// request is the API request that a context belongs to.
type request struct {
	id    string
	calls atomic.Uint64
}

type requestKey struct{}

// WithRequest returns a context that belongs to the API request with the given id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, &request{id: id})
}

// RequestID returns the id of the API request that ctx belongs to, or "" if it belongs to none.
func RequestID(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

// CallID returns a new id for a call made on behalf of the API request that ctx belongs to: the
// request's own id for its first call, then the id with "-2", "-3" and so on. It returns "" if ctx
// belongs to no request.
func CallID(ctx context.Context) string {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || r.id == "" {
		return ""
	}
	if n := r.calls.Add(1); n > 1 {
		return r.id + "-" + strconv.FormatUint(n, 10)
	}
	return r.id
}
