package httpapi

import "context"

// Freshness tells whether what Keys and Hubs answer from memory still holds. A replica that is cut
// off does not hear that a key is revoked.
type Freshness interface {
	// Fresh reports whether it holds at this moment.
	Fresh() bool
	// Confirm returns nil once it holds, at once if it does now. Otherwise the error is
	// service_unavailable.
	Confirm(ctx context.Context) error
	// Lost returns a channel that is closed once the replica is cut off: what is open ends then.
	Lost() <-chan struct{}
}

// confirm returns nil once keys and hubs are known to be as they are known here.
func (a *api) confirm(ctx context.Context) error {
	if a.Freshness == nil || a.Freshness.Fresh() {
		return nil
	}
	return a.Freshness.Confirm(ctx)
}

// lost returns what is closed once this replica is cut off, nil when it never is.
func (a *api) lost() <-chan struct{} {
	if a.Freshness == nil {
		return nil
	}
	return a.Freshness.Lost()
}
