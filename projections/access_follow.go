package projections

import (
	"context"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// follow applies the directory from where it stands.
func (a *Access) follow(ctx context.Context) error {
	after := a.Applied()
	head, err := a.dir.Head(ctx, after)
	if err != nil {
		return err
	}
	if after > head {
		return fmt.Errorf(
			"%w: they have it up to sequence %d, and it ends at %d", ErrOtherStream, after, head,
		)
	}
	if a.checked() {
		a.caughtUp(after, head)
	} else {
		after-- // the last event comes again, to be compared
	}
	return a.dir.Follow(ctx, after, func(batch []directory.Recorded) error {
		subjects, err := a.unreadable(ctx, batch)
		if err != nil {
			return err
		}
		last, err := a.apply(batch, subjects)
		if err != nil {
			// nothing is applied of another stream, and what was loaded is not this one's
			return err
		}
		a.caughtUp(last, head)
		a.applied.advance(last)
		return nil
	})
}

// checked says that there is no event to be compared with the directory's.
func (a *Access) checked() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.eventID == ""
}

func (a *Access) caughtUp(at, head uint64) {
	if at >= head {
		a.loadedOnce.Do(func() { close(a.loaded) })
	}
}

// unreadable gives what the events of a batch are about that cannot be read.
func (a *Access) unreadable(
	ctx context.Context, batch []directory.Recorded,
) (map[uint64]string, error) {
	subjects := map[uint64]string{}
	for _, r := range batch {
		if r.Err == nil {
			continue
		}
		event, ok, err := a.dir.At(ctx, r.Seq)
		if err != nil {
			return nil, err
		}
		if ok && event.Seq == r.Seq {
			subjects[r.Seq] = event.Subject
		}
		a.log.Error(
			"an event cannot be read and is passed over; if it is about an API key, the key is refused",
			"sequence", r.Seq, "event_type", r.Event.Type, "subject", event.Subject, "error", r.Err,
		)
	}
	return subjects, nil
}

// apply takes a batch, and gives how far it came. subjects are those of events that cannot be read.
func (a *Access) apply(
	batch []directory.Recorded, subjects map[uint64]string,
) (last uint64, err error) {
	var released []domain.HubID
	last, released, err = a.applyAll(batch, subjects)
	a.mu.RLock()
	onRelease := a.onRelease
	a.mu.RUnlock()
	for _, hub := range released {
		if onRelease != nil {
			onRelease(hub)
		}
	}
	return last, err
}

// applyAll is apply, and returns the hubs that were released instead of telling of them.
func (a *Access) applyAll(
	batch []directory.Recorded, subjects map[uint64]string,
) (last uint64, released []domain.HubID, err error) {
	last = a.Applied()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range batch {
		switch {
		case r.Seq < last:
			continue
		case r.Seq == last:
			if a.eventID != "" && r.Event.ID != a.eventID {
				return last, released, fmt.Errorf(
					"%w: event %d is %q there and %q here", ErrOtherStream, r.Seq, r.Event.ID,
					a.eventID,
				)
			}
			continue
		case r.Err != nil:
			a.unread++
			a.refuse(r.Seq, subjects[r.Seq])
		default:
			a.applyFact(r.Fact)
			if f, ok := r.Fact.(domain.HubReleased); ok {
				released = append(released, f.HubID)
			}
		}
		last, a.eventID = r.Seq, r.Event.ID
	}
	return last, released, nil
}

// applyFact takes one fact. Those that are not named let nobody in and keep nobody out.
func (a *Access) applyFact(fact domain.Fact) {
	a.people.apply(fact)
	switch f := fact.(type) {
	case domain.KeyCreated:
		a.putKey(f.KeyID, f.OrgID, f.Environment, f.Scopes, f.SecretHash)
	case domain.KeyRevoked:
		if key, ok := a.keys[f.KeyID]; ok {
			delete(a.keys, f.KeyID)
			close(key.revoke)
		}
		a.refused.forget(f.KeyID)
	case domain.ProjectionSkipped:
		if f.Projection == DirectoryProjection {
			a.readmit(f.Sequence)
		}
	case domain.HubAdded:
		a.hubs[f.HubID] = domain.HubAccess{
			OrgID: a.org(f.OrgID), Epoch: f.Epoch(),
		}
	case domain.HubReleased:
		delete(a.hubs, f.HubID)
	case domain.HubLogBegun:
		if hub, ok := a.hubs[f.HubID]; ok {
			hub.Epoch = f.Epoch()
			a.hubs[f.HubID] = hub
		}
	case domain.HubLogRestored:
		if hub, ok := a.hubs[f.HubID]; ok {
			hub.Epoch = f.Epoch()
			a.hubs[f.HubID] = hub
		}
	}
}

// putKey makes a key valid. One whose hash is none matches no secret, and is left out.
func (a *Access) putKey(id, org, environment string, scopes []domain.Scope, hash []byte) {
	if len(hash) != 32 {
		return
	}
	revoke := make(chan struct{})
	a.keys[id] = keyAccess{revoke: revoke, KeyAccess: domain.KeyAccess{
		ID: id, OrgID: a.org(org), Environment: environment, Scopes: scopes,
		SecretHash: [32]byte(hash), Revoked: revoke,
	}}
}

func (a *Access) org(id string) string {
	if known, ok := a.orgs[id]; ok {
		return known
	}
	a.orgs[id] = id
	return id
}
