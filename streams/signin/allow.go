package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/streams/jsapi"
)

const (
	// kindAllowance is the prefix of the counters of Allow.
	kindAllowance = "allowance."
	// maxConflicts bounds how often Allow repeats a write that lost against a concurrent call.
	maxConflicts = 8
)

// Allow counts one more action with that name, of which perHour are allowed within an hour and
// burst at once, on all replicas together. It returns 0 if the action is allowed, and otherwise how
// long to wait. The name is stored as a hash, for as long as it counts.
func (s *Store) Allow(
	ctx context.Context, name string, burst, perHour int, now time.Time,
) (wait time.Duration, err error) {
	interval := time.Hour / time.Duration(perHour)
	for range maxConflicts {
		// The value is the time at which a whole burst is allowed again.
		var full time.Time
		counter, err := s.bucket.GetJSON(ctx, key(kindAllowance, name), &full)
		if err != nil {
			return 0, unavailable(fmt.Errorf("sign-in: %w", err))
		}
		if full.Before(now) {
			full = now
		}
		if full = full.Add(interval); full.Sub(now) > interval*time.Duration(burst) {
			return full.Sub(now) - interval*time.Duration(burst), nil
		}
		content, err := json.Marshal(full)
		if err != nil {
			return 0, err
		}
		_, err = s.bucket.CompareAndSet(
			ctx, key(kindAllowance, name), content,
			jsapi.TTLHeader(full.Sub(now)+2*time.Second), counter.Revision,
		)
		if !errors.Is(err, jsapi.ErrConflict) {
			// An error may leave the action counted: a repeated call counts once more.
			return 0, unavailable(err)
		}
	}
	return interval, nil
}
