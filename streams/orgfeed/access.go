package orgfeed

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// The states of an entry for the readers of an organization.
type entryState int

const (
	// entryCurrent is an event of the hub's log.
	entryCurrent entryState = iota
	// entryFormer is an event of a former log of the hub.
	entryFormer
	// entryForeign is an event of a hub that the organization does not have.
	entryForeign
)

// access returns the access to an entry's hub, and what the entry is now.
func (f *Feed) access(
	ctx context.Context, org string, e *entry,
) (access domain.HubAccess, state entryState, err error) {
	for refreshed := false; ; refreshed = true {
		access, ok := f.cfg.Hubs.Hub(e.hub)
		ok = ok && access.OrgID == org
		switch {
		case ok && access.Epoch.Has(e.seq, e.epoch):
			return access, entryCurrent, nil
		case refreshed && ok:
			return access, entryFormer, nil
		case refreshed:
			return access, entryForeign, nil
		}
		// This process may not know yet that the hub was added or that an epoch has begun.
		if err := f.refreshSince(ctx, e.received); err != nil {
			return access, entryForeign, unavailable(err)
		}
	}
}

// refreshSince returns once Hubs has what the directory had at the time t.
func (f *Feed) refreshSince(ctx context.Context, t time.Time) error {
	if f.refreshed.Load() > t.UnixNano() {
		return nil
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	if err := f.cfg.Hubs.Refresh(ctx); err != nil {
		return err
	}
	f.refreshed.Store(begun.UnixNano())
	return nil
}
