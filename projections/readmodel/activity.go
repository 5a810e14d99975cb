package readmodel

import (
	"context"
	"math"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
)

// Activity returns the newest events of an organization before a sequence of the directory, newest
// first: at most limit (1 or more). before 0 starts with the newest. Events older than
// domain.ActivityRetention are left out.
func (s *Store) Activity(
	ctx context.Context, org string, limit int, before uint64,
) (domain.Page[domain.Activity], error) {
	params := query.ActivityParams{
		OrgID:    schema.StorableText(org),
		Before:   math.MaxInt64,
		Since:    time.Now().Add(-domain.ActivityRetention),
		RowLimit: int32(limit) + 1,
	}
	if before > 0 && before < math.MaxInt64 {
		params.Before = int64(before)
	}
	return read(
		ctx,
		s, org,
		"activity",
		func(ctx context.Context) (domain.Page[domain.Activity], error) {
			rows, err := s.queries.Activity(ctx, params)
			return pageOf(rows, limit, activityOf), err
		},
	)
}

func activityOf(row query.ActivityRow) domain.Activity {
	a := domain.Activity{
		Sequence: uint64(row.Sequence), At: row.At.UTC(), Type: row.Type,
		Actor: domain.Actor{Kind: row.ActorKind, ID: row.ActorID}, ActorName: row.ActorName,
		SubjectID: row.SubjectID, SubjectName: row.SubjectName, Detail: row.Detail,
	}
	if row.HubID != nil {
		a.Hub = domain.HubID(*row.HubID)
	}
	return a
}
