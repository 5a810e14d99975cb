package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
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
// this call wrote it. If the broker's answer is lost, the value may be stored or not. Then claim
// repeats the write on the same condition. After a conflict the id in the stored header shows
// whether the stored value is this call's own.
func (s *Store) claim(
	ctx context.Context, key string, revision uint64, content []byte, header nats.Header,
) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	claimant := rand.Text()
	claimed := maps.Clone(header)
	claimed[headerClaim] = []string{claimant}
	for unsure := false; ; {
		switch err := s.tryClaim(ctx, key, revision, content, claimed); {
		case err == nil:
			return true, nil
		case errors.Is(err, jsapi.ErrConflict) && !unsure:
			return false, nil
		case errors.Is(err, jsapi.ErrConflict):
			stored, err := s.bucket.Get(ctx, key)
			return err == nil && stored.Header.Get(headerClaim) == claimant, err
		case !jsapi.IsTemporary(err):
			return false, err
		default:
			unsure = unsure || errors.Is(err, jsapi.ErrOutcomeUnknown)
			if !streams.Sleep(ctx, claimPause) {
				return false, err
			}
		}
	}
}

func (s *Store) tryClaim(
	ctx context.Context, key string, revision uint64, content []byte, header nats.Header,
) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	_, err := s.bucket.CompareAndSet(ctx, key, content, header, revision)
	return err
}
