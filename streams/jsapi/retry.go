package jsapi

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// Patience is for how long requests are repeated by default: a cluster that lost a server has new
// leaders within ten seconds.
const Patience = 15 * time.Second

const (
	// defaultTry bounds one try by default.
	defaultTry = time.Second
	// firstPause is the pause after the first try, at most. It doubles up to maxPause. A random
	// part is cut off, so that replicas do not ask in step.
	firstPause = 10 * time.Millisecond
	maxPause   = 500 * time.Millisecond
	// setUpPatience is for creating streams, on disks that may be busy: a stream with three copies,
	// while one of three servers is away, takes up to a minute.
	setUpPatience = time.Minute
	setUpTry      = 5 * time.Second
)

// Retry is the policy by which requests to the broker are repeated. The zero value repeats requests
// that no leader has answered.
type Retry struct {
	// Total bounds all tries together, if ctx does not end earlier. Defaults to Patience.
	Total time.Duration
	// Try bounds one try. A leader that is gone never answers, and the next try finds its
	// successor. Defaults to 1 s. Once a try was not answered, the next ones have twice as long: the
	// leader may be slow.
	Try time.Duration
	// If reports whether to repeat after an error. Defaults to: no leader has answered. Nothing is
	// repeated after nats.ErrConnectionClosed.
	If func(error) bool
}

// WithDefaults returns a copy with defaults in place of zero values.
func (r Retry) WithDefaults() Retry {
	r.Total = cmp.Or(r.Total, Patience)
	r.Try = cmp.Or(r.Try, defaultTry)
	if r.If == nil {
		r.If = isUnanswered
	}
	return r
}

// Do calls try until it returns nil or an error after which nothing is repeated, until r.Total has
// passed, or until ctx ends. It returns the error of the last try. try may run more than once, so
// it must be harmless to repeat.
func (r Retry) Do(ctx context.Context, try func(ctx context.Context) error) error {
	r = r.WithDefaults()
	ctx, cancel := context.WithTimeout(ctx, r.Total)
	defer cancel()
	limit := r.Try
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		timedOut, err := once(ctx, limit, try)
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, nats.ErrConnectionClosed), !r.If(err):
			return err
		case timedOut:
			limit = 2 * r.Try
			continue // the try has waited long enough
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		}
	}
}

func once(
	ctx context.Context, limit time.Duration, try func(ctx context.Context) error,
) (timedOut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = try(ctx)
	return ctx.Err() != nil, err
}

// SetUp calls do, which creates or opens streams, buckets or consumers. It repeats as Retry does,
// but for a minute or until ctx ends.
func SetUp(ctx context.Context, do func(ctx context.Context) error) error {
	return Retry{Total: setUpPatience, Try: setUpTry}.Do(ctx, do)
}
