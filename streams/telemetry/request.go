package telemetry

import (
	"context"
	"strconv"
	"sync/atomic"
)

// request is what a context knows of the request that it serves.
type request struct {
	id    string
	calls atomic.Uint64
}

type requestKey struct{}

// WithRequest gives a context that serves the request of that id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, &request{id: id})
}

// RequestID gives the id of the request that ctx serves, "" when it serves none.
func RequestID(ctx context.Context) string {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.id
	}
	return ""
}

// CallID gives an id for a call that is made for the request that ctx serves, another one each
// time: the request's own for the first call, that and a number for further ones. "" when it serves
// none.
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
