package journal

import (
	"context"
	"errors"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// End returns the sequence of the last commit of a group's journal, from its leader. seen is a
// sequence that the caller knows the journal had, or 0: the leader must confirm an end before it.
func (j *Journal) End(ctx context.Context, group int, seen uint64) (uint64, error) {
	info, err := j.api.ConfirmedInfo(ctx, streams.JournalStream(group), seen)
	if err != nil {
		return 0, groupError(group, err)
	}
	return info.State.LastSeq, nil
}

// StoredAt returns when a commit of a group's journal was stored; false if the journal does not
// have it.
func (j *Journal) StoredAt(ctx context.Context, group int, seq uint64) (time.Time, bool, error) {
	msg, err := j.api.Get(ctx, streams.JournalStream(group), seq)
	if errors.Is(err, jsapi.ErrNotFound) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, groupError(group, err)
	}
	return msg.Time, true, nil
}
