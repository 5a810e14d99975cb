package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// saveEvery is how often an index is saved. A start reads the commits since the last snapshot.
	saveEvery = 5 * time.Minute
	// saveTimeout bounds how long a snapshot may take.
	saveTimeout = 30 * time.Second
	// loadTries is how often a snapshot is read that another process replaces meanwhile.
	loadTries = 5
	loadPause = 200 * time.Millisecond
)

// runSnapshots saves the index every 5 minutes if it has changed, until ctx ends. save reports
// whether this process is to save it, since one process is enough. It returns nil.
func (j *Journal) runSnapshots(ctx context.Context, x *Index, save func() bool) error {
	for streams.Sleep(ctx, saveEvery) {
		if !save() {
			continue
		}
		if err := j.SaveIndex(ctx, x); err != nil && ctx.Err() == nil {
			j.cfg.Logger.Warn("journal index not saved", "group", x.group, "error", err)
		}
	}
	return nil
}

// SaveIndex stores a snapshot of the index in place of the former one, wholly or not at all. It
// does nothing if the index has not changed since it was saved or loaded. It fails like
// jsapi.Append.
func (j *Journal) SaveIndex(ctx context.Context, x *Index) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	x.mu.RLock()
	if x.position == x.saved {
		x.mu.RUnlock()
		return nil
	}
	s := snapshot{position: x.position, id: x.id, tips: maps.Clone(x.tips)}
	x.mu.RUnlock()
	_, _ = rand.Read(s.generation[:]) // never fails
	var msgs []*nats.Msg
	for part, data := range s.marshal() {
		msg := nats.NewMsg(streams.JournalIndexSubject(x.group, part))
		msg.Data = data
		msgs = append(msgs, msg)
	}
	if _, err := jsapi.Append(ctx, j.cfg.Conn, msgs...); err != nil {
		return groupError(x.group, fmt.Errorf("save the index: %w", err))
	}
	j.metrics.snapshots.Inc()
	j.metrics.hubs.WithLabelValues(label(x.group)).Set(float64(len(s.tips)))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.saved = s.position
	return nil
}

// LoadIndex returns the index of a group from its last snapshot. It is empty if there is none, or
// none that fits the journal: then the whole journal must be followed. It fails like
// jsapi.API.GetLast.
func (j *Journal) LoadIndex(ctx context.Context, group int) (*Index, error) {
	s, err := j.loadSnapshot(ctx, group)
	if err == nil {
		err = j.checkSnapshot(ctx, group, s)
	}
	switch {
	case err == nil:
		j.metrics.hubs.WithLabelValues(label(group)).Set(float64(len(s.tips)))
		return &Index{
			group: group, position: s.position, id: s.id, tips: s.tips, saved: s.position,
		}, nil
	case errors.Is(err, jsapi.ErrNotFound):
		return NewIndex(group), nil
	case errors.Is(err, ErrUnreadable):
		j.cfg.Logger.Warn(
			"journal index not usable; reading the whole journal", "group", group, "error", err,
		)
		return NewIndex(group), nil
	default:
		return nil, groupError(group, fmt.Errorf("load the index: %w", err))
	}
}

// ReadIndex returns the index of a group with every commit that its journal has, for programs
// beside the service. It is empty before the first service has started. It fails like
// LoadIndex and Follower.Run.
func (j *Journal) ReadIndex(ctx context.Context, group int) (*Index, error) {
	x, err := j.LoadIndex(ctx, group)
	if errors.Is(err, jsapi.ErrNoStream) {
		return NewIndex(group), nil
	}
	if err != nil {
		return nil, err
	}
	var applyErr error
	f := j.NewFollower(
		group, x.Position()+1, func(commits []Commit) { applyErr = x.Apply(commits...) },
		func(_, to uint64) { x.Skip(to) },
	)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(running) }()
	err = f.Sync(ctx)
	stop()
	if runErr := <-ended; err != nil {
		return nil, errors.Join(err, runErr)
	}
	return x, applyErr
}

// loadSnapshot reads all parts of a snapshot.
func (j *Journal) loadSnapshot(ctx context.Context, group int) (*snapshot, error) {
	for try := 1; ; try++ {
		var s snapshot
		for part := 0; part == 0 || part < s.parts; part++ {
			msg, err := j.api.GetLast(
				ctx, streams.JournalIndexStream, streams.JournalIndexSubject(group, part),
			)
			switch {
			case err == nil:
				err = s.unmarshalPart(part, msg.Data)
			case part > 0 && errors.Is(err, jsapi.ErrNotFound):
				err = errOtherGeneration
			}
			if errors.Is(err, errOtherGeneration) && try < loadTries &&
				streams.Sleep(ctx, loadPause) {
				break // another process saved the index: begin again
			}
			if err != nil {
				return nil, err
			}
			if part == s.parts-1 {
				return &s, nil
			}
		}
	}
}

// checkSnapshot returns ErrUnreadable if the snapshot is of another journal than the one that is
// there now.
func (j *Journal) checkSnapshot(ctx context.Context, group int, s *snapshot) error {
	stream := streams.JournalStream(group)
	info, err := j.api.ConfirmedInfo(ctx, stream, s.position)
	if err != nil {
		return err
	}
	if info.State.LastSeq < s.position {
		return fmt.Errorf(
			"%w: the journal ends at %d, the snapshot at %d", ErrUnreadable, info.State.LastSeq,
			s.position,
		)
	}
	if info.State.FirstSeq > s.position || s.id == (commitID{}) {
		return nil
	}
	msg, err := j.api.Get(ctx, stream, s.position)
	if errors.Is(err, jsapi.ErrNotFound) { // expired since
		return nil
	}
	if err != nil {
		return err
	}
	c, err := unmarshalAt(s.position, msg.Data)
	if err == nil && c.id != s.id {
		err = fmt.Errorf("%w: commit %d is not the snapshot's", ErrUnreadable, s.position)
	}
	return err
}
