package readmodel

import "context"

// What tests of the package use.
var (
	MayPass    = mayPass
	Connection = connection
)

// Read runs a query like those of the Store.
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
