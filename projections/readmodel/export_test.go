package readmodel

import (
	"context"

	"hubcloud/domain"
)

// What tests of the package use.
var (
	MayPass    = mayPass
	Connection = connection
)

// Read runs a query like those of the Store. The read models must be complete.
func (s *Store) Read(ctx context.Context, ask func(ctx context.Context) (int, error)) error {
	_, err := read(ctx, s, "an organization", "a test", ask)
	return err
}

// StatementTimeout returns the bound of queries that the server has.
func (s *Store) StatementTimeout(ctx context.Context) (limit string, err error) {
	err = s.pool.QueryRow(ctx, "SHOW statement_timeout").Scan(&limit)
	return limit, err
}

// Away reports whether reads are waiting for the database.
func (s *Store) Away() bool { return s.outage.since.Load() != 0 }

// ExplainStates returns the plan of the query of a page of states, with what each step has done.
func (s *Store) ExplainStates(
	ctx context.Context, org string, filter domain.StateFilter, limit int,
	after domain.StatePosition,
) (plan []byte, err error) {
	hubs, _, err := s.hubsToLookAt(ctx, domain.Reach{OrgID: org}, filter, limit, after)
	if err != nil {
		return nil, err
	}
	err = s.pool.QueryRow(
		ctx, "EXPLAIN (ANALYZE, TIMING off, FORMAT json) "+statesQuery,
		statesArgs(org, hubs, filter, limit, after)...,
	).Scan(&plan)
	return plan, err
}
