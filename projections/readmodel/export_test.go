package readmodel

import "context"

// What tests of the package use.
var (
	MayPass    = mayPass
	Connection = connection
)

// Read runs a query like those of the Store.
func (s *Store) Read(ctx context.Context, ask func(ctx context.Context) (int, error)) error {
	_, err := read(ctx, s, "a test", ask)
	return err
}

// Away reports whether reads are waiting for the database.
func (s *Store) Away() bool { return s.outage.since.Load() != 0 }
