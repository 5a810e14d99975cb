package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// kindAllowance begins the keys of what Allow counts.
	kindAllowance = "allowance."
	// maxConflicts bounds how often Allow counts anew because another was faster. Who is that often
	// too late has many at the same moment.
	maxConflicts = 8
)

// Allow counts one more of something that may be done so many times within an hour, up to burst of
// them at once, on all replicas together. It returns 0 if it may be done now, and otherwise for how
// long not. name says what it is; it is kept as a hash, and for as long as it counts.
func (s *Store) Allow(
	ctx context.Context, name string, burst, perHour int, now time.Time,
) (wait time.Duration, err error) {
	interval := time.Hour / time.Duration(perHour)
	for range maxConflicts {
		// One number is kept: when all of it may be done at once again.
		var full time.Time
		content, revision, err := streams.Newest(ctx, s.nc, s.kv.Bucket(), key(kindAllowance, name))
		if err != nil {
			return 0, unavailable(fmt.Errorf("sign-in: %w", err))
		}
		if revision > 0 {
			if err := json.Unmarshal(content, &full); err != nil {
				return 0, fmt.Errorf("sign-in: what is kept is no allowance: %w", err)
			}
		}
		if full.Before(now) {
			full = now
		}
		if full = full.Add(interval); full.Sub(now) > interval*time.Duration(burst) {
			return full.Sub(now) - interval*time.Duration(burst), nil
		}
		if content, err = json.Marshal(full); err != nil {
			return 0, err
		}
		life := (full.Sub(now) + 2*time.Second).Truncate(time.Second)
		_, err = streams.Store(ctx, s.nc, &nats.Msg{
			Subject: "$KV." + s.kv.Bucket() + "." + key(kindAllowance, name), Data: content,
			Header: nats.Header{
				"Nats-Expected-Last-Subject-Sequence": {
					strconv.FormatUint(revision, 10),
				}, "Nats-TTL": {life.String()},
			},
		})
		if !errors.Is(err, streams.ErrConflict) {
			// it may be counted, and is counted once more when it is asked again
			return 0, unavailable(err)
		}
	}
	return interval, nil
}
