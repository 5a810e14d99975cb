package rebuild

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/apply"
	"hubcloud/projections/internal/query"
	"hubcloud/streams/directory"
)

// followDirectory applies the directory after a sequence, until ctx ends.
func (b *build) followDirectory(ctx context.Context, after uint64) error {
	return b.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		w, err := b.directoryWriter(ctx, conn, after)
		if err != nil {
			return err
		}
		return b.cfg.Directory.Follow(
			ctx, after, func(batch []directory.Recorded) error { return w.Apply(ctx, batch) },
		)
	})
}

func (b *build) directoryWriter(
	ctx context.Context, conn *pgx.Conn, after uint64,
) (*apply.Writer[directory.Recorded], error) {
	skipped, err := apply.Skips(b.cfg.Directory.Skips).Sequences(ctx, projections.Directory)
	w := &apply.Writer[directory.Recorded]{
		Source:     &apply.DirectorySource{Log: b.cfg.Directory},
		Conn:       conn,
		Checkpoint: apply.Checkpoint{Sequence: after},
		Skipped:    skipped,
	}
	w.OnCommit = func(int) { b.directoryAt.Advance(w.Checkpoint.Sequence) }
	return w, err
}

// errFarEnough is returned by a callback of followPresence to end it.
var errFarEnough = errors.New("far enough")

// followPresence applies the presence bucket after the tables' checkpoint. It calls applied, unless
// that is nil, after each batch, and returns its first error, or ctx's.
func (b *build) followPresence(
	ctx context.Context, applied func(batch []apply.PresenceEntry) error,
) error {
	return b.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		at, err := query.New(conn).Checkpoint(ctx, projections.Presence)
		if err != nil {
			return err
		}
		w := &apply.Writer[apply.PresenceEntry]{
			Source:     b.presence,
			Conn:       conn,
			Checkpoint: apply.Checkpoint{Sequence: uint64(at.Sequence)},
		}
		w.Skipped, err = apply.Skips(b.cfg.Directory.Skips).Sequences(ctx, projections.Presence)
		if err != nil {
			return err
		}
		w.OnCommit = func(int) { b.presenceAt.Advance(w.Checkpoint.Sequence) }
		for {
			err := b.presence.Follow(
				ctx, w.Checkpoint.Sequence, func(batch []apply.PresenceEntry) error {
					if err := w.Apply(ctx, batch); err != nil || applied == nil {
						return err
					}
					return applied(batch)
				},
			)
			if !errors.Is(err, apply.ErrStalled) || ctx.Err() != nil {
				return err
			}
		}
	})
}
