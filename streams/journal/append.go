package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// AnyEnd is the expected end of a log for Append if any end will do.
const AnyEnd = math.MaxUint64

const (
	firstRoutePause = 5 * time.Millisecond
	maxRoutePause   = 250 * time.Millisecond
)

// Append stores records of one kind in a hub's log, in order, and wholly or not at all, whichever
// replica writes the log. The log must have the expected end, unless that is AnyEnd: its last event
// must have the sequence expected, where 0 means that the log has no event, for instance because
// all have expired; for states, its last record must have it. Append sets the records' hub,
// sequence and time. It returns the sequence of the last record.
//
// Errors: jsapi.ErrConflict; jsapi.ErrOutcomeUnknown, the only one after which the records may be
// stored; jsapi.ErrNoLeader if no replica writes the group's journal; ctx's.
func (j *Journal) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []Record,
) (last uint64, err error) {
	g := j.groupOf(hub)
	patience, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	for pause := firstRoutePause; ; pause = min(2*pause, maxRoutePause) {
		req := &request{hub: hub, expected: expected, records: records}
		if q := g.queue.Load(); q != nil {
			last, err = q.append(ctx, req)
		} else {
			last, err = j.send(patience, g, req)
		}
		if !errors.Is(err, errStopped) && !errors.Is(err, errNoWriter) {
			return last, err
		}
		if !streams.Sleep(patience, pause) {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, fmt.Errorf(
				"hub log of %s: %w: no replica writes journal %d", hub, jsapi.ErrNoLeader, g.number,
			)
		}
	}
}
