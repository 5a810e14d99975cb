package views

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// IsIntact reports whether a view has its log up to its own end, as far as the stream's description
// tells. last is the time of the log's last record. The front of a view that was written again
// within the retention is not judged: its messages have other times than their records.
func IsIntact(
	info *jetstream.StreamInfo, last, now time.Time, retention time.Duration,
) bool {
	rewritten := info.Config.FirstSeq > 0 && now.Sub(info.Created) < retention
	return info.State.LastSeq > 0 && info.State.NumDeleted == 0 &&
		(rewritten || !lacksFront(info, last, now, retention))
}

// lacksFront reports whether messages at the front of a stream may have been lost rather than have
// expired. last is the time of the log's last record. A view that was written again begins with the
// first record that was to be kept then.
func lacksFront(
	info *jetstream.StreamInfo, last, now time.Time, retention time.Duration,
) bool {
	state, expiring := &info.State, now.Add(time.Minute-retention)
	switch {
	case state.FirstSeq <= max(1, info.Config.FirstSeq):
		return false
	case state.Msgs == 0:
		return last.After(expiring)
	default:
		return state.FirstTime.After(expiring)
	}
}
