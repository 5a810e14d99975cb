package httpapi

import "context"

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
