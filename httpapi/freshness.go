package httpapi

import "context"

// awaitFresh returns nil once Keys and Hubs are known to be up to date.
func (a *api) awaitFresh(ctx context.Context) error {
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
