package readmodel

import (
	"context"
	"math"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// Activity returns the newest activity of an organization before a sequence of the directory, newest
// first: at most limit (1 or more). before 0 starts with the newest. Activity older than
// domain.ActivityRetention is left out.
func (s *Store) Activity(
	ctx context.Context, org string, limit int, before uint64,
) (domain.Page[domain.Activity], error) {
	params := schema.ActivityParams{Before: math.MaxInt64}
	if before > 0 && before < math.MaxInt64 {
		params.Before = int64(before)
	}
	return s.activity(ctx, org, limit, time.Time{}, params)
}

// ActivityAfter returns the oldest activity of an organization after a sequence, oldest first, and
// since a time, if it is not zero. Otherwise it is as Activity.
func (s *Store) ActivityAfter(
	ctx context.Context, org string, limit int, after uint64, since time.Time,
) (domain.Page[domain.Activity], error) {
	params := schema.ActivityParams{Ascending: true, After: int64(min(after, math.MaxInt64))}
	return s.activity(ctx, org, limit, since, params)
}

func (s *Store) activity(
	ctx context.Context, org string, limit int, since time.Time, params schema.ActivityParams,
) (domain.Page[domain.Activity], error) {
	params.OrgID, params.RowLimit = schema.StorableText(org), int32(limit)+1
	params.Since = time.Now().Add(-domain.ActivityRetention)
	if since.After(params.Since) {
		params.Since = since
	}
	ask := func(ctx context.Context) (domain.Page[domain.Activity], error) {
		rows, err := s.queries.Activity(ctx, params)
		if !params.Ascending {
			slices.Reverse(rows)
		}
		return pageOf(rows, limit, activityOf), err
	}
	return read(ctx, s, org, "activity", ask)
}

func activityOf(row schema.ActivityRow) domain.Activity {
	a := domain.Activity{
		Sequence: uint64(row.Sequence), At: row.At.UTC(), Type: row.Type,
		Actor: domain.Actor{Kind: row.ActorKind, ID: row.ActorID}, ActorName: row.ActorName,
		SubjectID: row.SubjectID, SubjectName: row.SubjectName, Detail: row.Detail,
		RequestID: row.RequestID, Address: row.Address,
	}
	if row.HubID != nil {
		a.Hub = domain.HubID(*row.HubID)
	}
	return a
}
