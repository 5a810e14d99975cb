package projector

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// Directory is the log of the directory; *directory.Log implements it.
type Directory interface {
	// Follow calls fn with every event after a sequence, in order and without a gap, and with new
	// events as they are stored.
	Follow(ctx context.Context, after uint64, fn func(batch []directory.Recorded) error) error
	// Replay calls fn with every event after one sequence up to another, inclusive, in order and
	// without a gap.
	Replay(
		ctx context.Context, after, until uint64, fn func(batch []directory.Recorded) error,
	) error
	// Head returns the sequence of the log's last event. seen is a sequence that the caller has
	// read, or 0. If the log seems to end before seen, Head asks the stream's leader.
	Head(ctx context.Context, seen uint64) (uint64, error)
	// At returns the first event at a sequence or after it, and false if there is none.
	At(ctx context.Context, seq uint64) (event directory.Stored, ok bool, err error)
	// Skips returns the events that operators have made a projection skip, by their sequence in its
	// stream.
	Skips(ctx context.Context, projection string) (map[uint64]domain.ProjectionSkipped, error)
}

const (
	// presenceTimeout bounds the wait for the other projection before a hub is added.
	presenceTimeout = time.Second
	// recent is the age up to which an event's caller may still be waiting.
	recent = time.Minute
)

// directorySource is the Source of the projection schema.Directory.
type directorySource struct {
	Log Directory
	// Presence is the source of the other projection and PresencePosition its checkpoint. If they
	// are set, Follow waits for that projection before it delivers a newly added hub.
	Presence         *PresenceSource
	PresencePosition *schema.Position
}

// Name returns schema.Directory.
func (d *directorySource) Name() string { return schema.Directory }

// Head implements Source.
func (d *directorySource) Head(ctx context.Context, seen uint64) (uint64, error) {
	return d.Log.Head(ctx, seen)
}

// StoredAt returns when the first event at a sequence or after it was stored, and false if there
// is none.
func (d *directorySource) StoredAt(ctx context.Context, seq uint64) (time.Time, bool, error) {
	event, ok, err := d.Log.At(ctx, seq)
	return event.StoredAt, ok, err
}

// Follow implements Source.
func (d *directorySource) Follow(
	ctx context.Context, at Checkpoint, fn func([]directory.Recorded) error,
) error {
	after := at.Sequence
	if at.EventID != "" {
		after--
	}
	return d.Log.Follow(ctx, after, func(batch []directory.Recorded) error {
		if d.Presence != nil && addsHub(batch) {
			d.awaitPresence(ctx)
		}
		return fn(batch)
	})
}

// addsHub reports whether a hub was added recently.
func addsHub(batch []directory.Recorded) bool {
	for _, r := range batch {
		if _, ok := r.Fact.(domain.HubAdded); ok && time.Since(r.Event.At) < recent {
			return true
		}
	}
	return false
}

// awaitPresence waits until the other projection has caught up, at most presenceTimeout. A hub
// connects before it is added, so its new owner must find its status and the content of its hello.
func (d *directorySource) awaitPresence(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	if head, err := d.Presence.Head(ctx, 0); err == nil {
		_ = d.PresencePosition.Wait(ctx, head) // after a timeout the status appears a little later
	}
}

// Header implements Source.
func (d *directorySource) Header(r directory.Recorded) Header {
	return Header{Sequence: r.Seq, Type: r.Event.Type, ID: r.Event.ID, Err: r.Err}
}

// Permanent implements Source.
func (d *directorySource) Permanent(err error) bool { return IsPermanent(err) }

// Statements implements Source.
func (d *directorySource) Statements(
	_ context.Context, _ *pgx.Conn, batch []directory.Recorded,
) ([]schema.Statement, error) {
	var changes Changes
	for _, r := range batch {
		if err := changes.Add(r); err != nil {
			return nil, err
		}
	}
	return changes.Statements(), nil
}
