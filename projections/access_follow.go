package projections

import (
	"context"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams/directory"
)

// follow applies the directory from where it stands.
func (a *Access) follow(ctx context.Context) error {
	head, err := a.dir.Head(ctx)
	if err != nil {
		return err
	}
	after := a.Applied()
	if after > head {
		return fmt.Errorf("%w: they have it up to sequence %d, and it ends at %d", ErrOtherStream, after, head)
	}
	if a.checked() {
		a.caughtUp(after, head)
	} else {
		after-- // the last event comes again, to be compared
	}
	return a.dir.Follow(ctx, after, func(batch []directory.Recorded) error {
		last, err := a.apply(batch)
		a.caughtUp(last, head)
		a.applied.advance(last)
		return err
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

// apply takes a batch, up to the first event that cannot be read, and gives how far it came.
func (a *Access) apply(batch []directory.Recorded) (last uint64, err error) {
	last = a.Applied()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range batch {
		switch {
		case r.Seq < last:
			continue
		case r.Seq == last:
			if a.eventID != "" && r.Event.ID != a.eventID {
				return last, fmt.Errorf("%w: event %d is %q there and %q here", ErrOtherStream, r.Seq, r.Event.ID, a.eventID)
			}
			continue
		case r.Err != nil:
			return last, &StoppedError{Projection: "access", Sequence: r.Seq, Type: r.Event.Type, Err: r.Err}
		}
		a.applyFact(r.Fact)
		last, a.eventID, a.stopped = r.Seq, r.Event.ID, nil
	}
	return last, nil
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
	case domain.HubAdded:
		a.hubs[f.HubID] = domain.HubAccess{OrgID: a.org(f.OrgID), Incarnation: f.Incarnation}
	case domain.HubLogBegun:
		if hub, ok := a.hubs[f.HubID]; ok {
			hub.Incarnation, hub.LogAfter, hub.Former = f.Incarnation, f.After, ""
			a.hubs[f.HubID] = hub
		}
	case domain.HubLogRestored:
		if hub, ok := a.hubs[f.HubID]; ok {
			hub.Incarnation, hub.LogAfter, hub.Former = f.Incarnation, f.After, f.Former
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
		ID: id, OrgID: a.org(org), Environment: environment, Scopes: scopes, SecretHash: [32]byte(hash), Revoked: revoke,
	}}
}

func (a *Access) org(id string) string {
	if known, ok := a.orgs[id]; ok {
		return known
	}
	a.orgs[id] = id
	return id
}
