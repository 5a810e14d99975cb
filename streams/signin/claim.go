package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// headerClaim is the header with a random id of the call that wrote a value.
	headerClaim = "Hubcloud-Claim"
	// claimTimeout bounds a claim with all its tries, tryTimeout one try. claimPause is the pause
	// between two tries.
	claimTimeout = 15 * time.Second
	tryTimeout   = 2 * time.Second
	claimPause   = 100 * time.Millisecond
)

// claim writes a value under a key on condition that the key has that revision, and reports whether
// this call wrote it. When the broker's answer is lost, the write may be stored or not: claim
// repeats it on the same condition, and finds out by the id in the header whose write a conflict is
// with.
func (s *Store) claim(
	ctx context.Context, key string, revision uint64, content []byte, header nats.Header,
) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	claimant := rand.Text()
	for unsure := false; ; {
		msg := &nats.Msg{
			Subject: "$KV." + s.kv.Bucket() + "." + key,
			Data:    content,
			Header:  nats.Header{headerClaim: {claimant}},
		}
		for name, values := range header {
			msg.Header[name] = values
		}
		streams.Expect(msg, msg.Subject, revision)
		switch err := s.store(ctx, msg); {
		case err == nil:
			return true, nil
		case errors.Is(err, streams.ErrConflict) && !unsure:
			return false, nil
		case errors.Is(err, streams.ErrConflict):
			kept, err := streams.NewestKept(ctx, s.nc, s.kv.Bucket(), key)
			return err == nil && kept.Header.Get(headerClaim) == claimant, err
		case !streams.Passing(err):
			return false, err
		default:
			unsure = unsure || errors.Is(err, streams.ErrUnsure)
			select {
			case <-ctx.Done():
				return false, err
			case <-time.After(claimPause):
			}
		}
	}
}

// store tries once.
func (s *Store) store(ctx context.Context, msg *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	_, err := streams.Store(ctx, s.nc, msg)
	return err
}
