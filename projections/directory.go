package projections

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// The names of the projections.
const (
	// DirectoryProjection is that of the stream DIRECTORY: who owns what.
	DirectoryProjection = "directory"
	// PresenceProjection is that of the bucket `presence`: whether hubs are connected.
	PresenceProjection = "presence"
)

// Directory is what is needed of the directory's log; *directory.Log is it.
type Directory interface {
	// Follow gives every event after a sequence, in order and without a gap, and new ones as they
	// are stored.
	Follow(ctx context.Context, after uint64, fn func(batch []directory.Recorded) error) error
	// Head returns the sequence of the last event. One before seen, of which the caller knows, is
	// confirmed.
	Head(ctx context.Context, seen uint64) (uint64, error)
	// Replay gives every event after a sequence up to another one, and that one too, in order and
	// without a gap.
	Replay(
		ctx context.Context, after, until uint64, fn func(batch []directory.Recorded) error,
	) error
	// At gives the first event at a sequence or behind it, and false when there is none.
	At(ctx context.Context, seq uint64) (event directory.Stored, ok bool, err error)
	// Skips gives the events that operators have a projection step over, by their sequence in its
	// stream.
	Skips(ctx context.Context, projection string) (map[uint64]domain.ProjectionSkipped, error)
}

const (
	// presenceWait is how long a hub that is added waits for its presence to be projected.
	presenceWait = time.Second
	// recently is how old an event may be for somebody to be waiting for it.
	recently = time.Minute
)

// directorySource makes the tables of organizations, members, invitations, sites, hubs, names and
// rooms of devices, and keys.
type directorySource struct {
	log Directory
	// presence and presenceHead are how far the other projection is, and how far it has to go.
	presence     *progress
	presenceHead func(ctx context.Context, seen uint64) (uint64, error)
}

func (d *directorySource) name() string { return DirectoryProjection }

func (d *directorySource) head(ctx context.Context, seen uint64) (uint64, error) {
	return d.log.Head(ctx, seen)
}

func (d *directorySource) follow(
	ctx context.Context, after uint64, fn func([]directory.Recorded) error,
) error {
	return d.log.Follow(ctx, after, func(batch []directory.Recorded) error {
		d.awaitPresence(ctx, batch)
		return fn(batch)
	})
}

// awaitPresence lets the other projection catch up before a hub appears: a hub can only be added
// once it has connected, and whoever adds it at that very moment is to find its status, and what it
// said in its hello.
func (d *directorySource) awaitPresence(ctx context.Context, batch []directory.Recorded) {
	added := false
	for _, r := range batch {
		_, isAdded := r.Fact.(domain.HubAdded)
		added = added || isAdded && time.Since(r.Event.At) < recently
	}
	if !added {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	if head, err := d.presenceHead(ctx, 0); err == nil {
		_ = d.presence.wait(ctx, head) // its status then comes a little later
	}
}

func (d *directorySource) mark(r directory.Recorded) mark {
	return mark{seq: r.Seq, kind: r.Event.Type, id: r.Event.ID, err: r.Err}
}

func (d *directorySource) statements(batch []directory.Recorded) ([]statement, error) {
	var folded changes
	for _, r := range batch {
		if err := folded.add(r); err != nil {
			return nil, err
		}
	}
	return folded.statements(), nil
}
