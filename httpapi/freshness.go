package httpapi

import "context"

// Freshness reports whether Keys and Hubs, which answer from memory, are up to date. A replica that
// loses the broker does not learn that a key was revoked.
type Freshness interface {
	// Fresh reports whether they are up to date now.
	Fresh() bool
	// Confirm waits until they are up to date, and returns service_unavailable if that takes too
	// long.
	Confirm(ctx context.Context) error
	// Lost returns a channel that is closed when the replica loses the broker.
	Lost() <-chan struct{}
}

// confirm returns nil once keys and hubs are known to be up to date.
func (a *api) confirm(ctx context.Context) error {
	if a.Freshness == nil || a.Freshness.Fresh() {
		return nil
	}
	return a.Freshness.Confirm(ctx)
}

// lost returns a channel that is closed when this replica loses the broker, or nil if it cannot.
func (a *api) lost() <-chan struct{} {
	if a.Freshness == nil {
		return nil
	}
	return a.Freshness.Lost()
}
