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
	// headerClaim holds a random text that says whose write it is.
	headerClaim = "Hubcloud-Claim"
	// claimPatience bounds how long a claim is tried, claimTry one try, and claimPause the time
	// between two.
	claimPatience = 15 * time.Second
	claimTry      = 2 * time.Second
	claimPause    = 100 * time.Millisecond
)

// claim writes something under a key on condition that the last there is of that revision, and
// reports whether it was this call that did so. An answer of the broker that is lost leaves open
// whether the write was stored. It is then repeated on the same condition, and after a conflict the
// text in the header tells whose write came first.
func (s *Store) claim(
	ctx context.Context, key string, revision uint64, content []byte, header nats.Header,
) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
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

// store is one try.
func (s *Store) store(ctx context.Context, msg *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, claimTry)
	defer cancel()
	_, err := streams.Store(ctx, s.nc, msg)
	return err
}
