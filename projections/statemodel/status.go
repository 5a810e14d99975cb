package statemodel

import (
	"context"
	"fmt"
	"time"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/status"
	"hubcloud/streams/journal"
)

// Status returns the status of the projection. Its sequences count the commits of all journals.
func Status(
	ctx context.Context, db query.DBTX, journals *journal.Journal,
) (s projections.Status, err error) {
	s.Name = projections.Devices
	if err := readStatus(ctx, db, journals, &s); err != nil {
		return s, fmt.Errorf("read models: status of %s: %w", s.Name, err)
	}
	return s, nil
}

func readStatus(
	ctx context.Context, db query.DBTX, journals *journal.Journal, s *projections.Status,
) error {
	at := Positions{At: make([]uint64, journals.Number())}
	var exists bool
	err := db.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", Schema()).Scan(&exists)
	if err == nil && exists {
		at, err = ReadPositions(ctx, db, Schema(), journals.Number())
	}
	if err != nil {
		return err
	}
	s.Sequence = at.Sum()
	if err := measureLag(ctx, journals, at, s); err != nil {
		return err
	}
	attended, err := database.ProjectorLock(Schema()).IsHeld(ctx, db)
	if err != nil {
		return err
	}
	stops, err := query.New(db).Stops(ctx)
	if err != nil {
		return err
	}
	s.State, s.Reason = status.StateOf(s.Name, stops, attended, at.Built)
	return nil
}

// measureLag sets Head, Lag and Behind.
func measureLag(
	ctx context.Context, journals *journal.Journal, at Positions, s *projections.Status,
) error {
	for number, position := range at.At {
		end, err := journals.End(ctx, number, position)
		if err != nil {
			return err
		}
		s.Head += end
		if end <= position {
			continue
		}
		s.Lag += end - position
		stored, ok, err := journals.StoredAt(ctx, number, position+1)
		if err != nil {
			return err
		}
		if ok { // otherwise it has expired
			s.Behind = max(s.Behind, time.Since(stored))
		}
	}
	return nil
}
