package orgfeed

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
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
		case ok && (e.gap || access.Epoch.Has(e.seq, e.epoch)):
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

// formerLog is the log of a hub before its reset.
type formerLog struct {
	// epoch is the log's present epoch.
	epoch domain.EpochID
	// last is when the last event before the reset was stored, in nanoseconds since 1970.
	last int64
}

// lastFormer returns when the last event of a hub was stored before its present epoch began, in
// nanoseconds since 1970; 0 if that is not known any more.
func (f *Feed) lastFormer(
	ctx context.Context, org string, hub domain.HubID, epoch domain.EpochID,
) (int64, error) {
	if known, ok := f.former.Load(hub); ok {
		if former := known.(formerLog); former.epoch == epoch {
			return former.last, nil
		}
	}
	last, err := f.cfg.Logs.LastFormer(ctx, org, hub)
	if errors.Is(err, feed.ErrReleased) {
		return 0, nil
	}
	if err == nil {
		f.former.Store(hub, formerLog{epoch, last})
	}
	return last, err
}

// refreshSince returns once Hubs has what the directory had at the time t.
func (f *Feed) refreshSince(ctx context.Context, t time.Time) error {
	// After compares by the monotonic clock: the wall clock may have been set back since.
	if last := f.refreshed.Load(); last != nil && last.After(t) {
		return nil
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	if err := f.cfg.Hubs.Refresh(ctx); err != nil {
		return err
	}
	f.refreshed.Store(&begun)
	return nil
}
