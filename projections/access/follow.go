package access

import (
	"context"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// follow applies the directory after the last event that was applied. It fails with
// schema.ErrOtherStream if that event is of another stream.
func (a *Index) follow(ctx context.Context) error {
	after := a.Applied()
	head, err := a.cfg.Directory.Head(ctx, after)
	if err != nil {
		return err
	}
	if after > head {
		return fmt.Errorf(
			"%w: the index is at sequence %d, but the directory ends at %d",
			schema.ErrOtherStream, after, head,
		)
	}
	if a.lastEventKnown() {
		after-- // apply compares the id of the last event
	} else {
		a.caughtUp(after, head)
	}
	return a.cfg.Directory.Follow(ctx, after, func(batch []directory.Recorded) error {
		subjects, err := a.unreadableSubjects(ctx, batch)
		if err != nil {
			return err
		}
		last, err := a.apply(batch, subjects)
		if err != nil {
			return err
		}
		a.caughtUp(last, head)
		a.applied.Advance(last)
		a.signalActivity(batch)
		return nil
	})
}

// signalActivity signals the activity that a batch records. Applied includes the batch already.
func (a *Index) signalActivity(batch []directory.Recorded) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := 0; i < len(batch) && len(a.activity) > 0; i++ {
		r := batch[i]
		if activity, ok := domain.ActivityOf(r.Seq, r.Event, r.Fact); ok {
			a.activity.send(activity.OrgID)
		}
	}
}

// lastEventKnown reports whether the id of the last event applied is known.
func (a *Index) lastEventKnown() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.eventID != ""
}

func (a *Index) caughtUp(at, head uint64) {
	if at >= head {
		a.loadedOnce.Do(func() { close(a.loaded) })
	}
}

// unreadableSubjects returns the subjects of the events of a batch that cannot be read, by
// sequence.
func (a *Index) unreadableSubjects(
	ctx context.Context, batch []directory.Recorded,
) (map[uint64]string, error) {
	subjects := map[uint64]string{}
	for _, r := range batch {
		if r.Err == nil {
			continue
		}
		event, ok, err := a.cfg.Directory.At(ctx, r.Seq)
		if err != nil {
			return nil, err
		}
		if ok && event.Seq == r.Seq {
			subjects[r.Seq] = event.Subject
		}
		a.logger.Error(
			"event not readable; if it is about an API key, the key is rejected", "sequence", r.Seq,
			"event_type", r.Event.Type, "subject", event.Subject, "error", r.Err,
		)
	}
	return subjects, nil
}

// apply applies a batch, calls onAdd and onRelease, and returns the sequence of the last event
// applied. subjects are the subjects of events that cannot be read. It fails with
// schema.ErrOtherStream if the batch has another event than the last one applied; then it applies
// nothing.
func (a *Index) apply(
	batch []directory.Recorded, subjects map[uint64]string,
) (last uint64, err error) {
	last, changed, err := a.applyLocked(batch, subjects)
	a.mu.RLock()
	onAdd, onRelease := a.onAdd, a.onRelease
	a.mu.RUnlock()
	select {
	case <-a.loaded:
	default:
		onAdd = nil // the hubs were added before
	}
	for _, c := range changed {
		if c.added && onAdd != nil {
			onAdd(c.hub)
		} else if !c.added && onRelease != nil {
			onRelease(c.hub)
		}
	}
	return last, err
}

// hubChange is a hub that was added or released.
type hubChange struct {
	hub   domain.HubID
	added bool
}

// applyLocked is apply under the lock. It returns the hubs that were added and released, in order.
func (a *Index) applyLocked(
	batch []directory.Recorded, subjects map[uint64]string,
) (last uint64, changed []hubChange, err error) {
	last = a.Applied()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range batch {
		switch {
		case r.Seq < last:
			continue
		case r.Seq == last:
			if a.eventID != "" && r.Event.ID != a.eventID {
				return last, changed, fmt.Errorf(
					"%w: event %d is %q in the directory and %q in the index",
					schema.ErrOtherStream, r.Seq, r.Event.ID, a.eventID,
				)
			}
			continue
		case r.Err != nil:
			a.unread++
			a.suspendKey(r.Seq, subjects[r.Seq])
		default:
			a.applyFact(r.Fact)
			switch f := r.Fact.(type) {
			case domain.HubAdded:
				changed = append(changed, hubChange{f.HubID, true})
			case domain.HubReleased:
				changed = append(changed, hubChange{f.HubID, false})
			}
		}
		last, a.eventID = r.Seq, r.Event.ID
	}
	return last, changed, nil
}

// applyFact applies one fact. Facts without a case do not matter for authorization.
func (a *Index) applyFact(fact domain.Fact) {
	a.members.apply(fact)
	switch f := fact.(type) {
	case domain.KeyCreated:
		if len(f.SecretHash) == 32 { // another matches no secret
			a.putKey(domain.KeyAccess{
				ID: f.KeyID, Reach: domain.Reach{OrgID: f.OrgID, Sites: f.Sites},
				Environment: f.Environment, Scopes: f.Scopes, ExpiresAt: f.ExpiresAt,
				SecretHash: [32]byte(f.SecretHash),
			})
		}
	case domain.KeyChanged:
		a.changeKey(f.KeyID, func(key *domain.KeyAccess) {
			key.Reach.Sites, key.ExpiresAt = f.Sites, f.ExpiresAt
		})
	case domain.KeyRotated:
		if len(f.SecretHash) == 32 {
			a.changeKey(f.KeyID, func(key *domain.KeyAccess) {
				key.SecretHash, key.Former = [32]byte(f.SecretHash), f.Former
			})
		}
	case domain.KeyRevoked:
		if key, ok := a.keys[f.KeyID]; ok {
			delete(a.keys, f.KeyID)
			close(key.revoke)
		}
		a.suspended.revoke(f.KeyID)
	case domain.ProjectionSkipped:
		if f.Projection == schema.Directory {
			a.resumeKey(f.Sequence)
		}
	case domain.HubAdded:
		a.hubs.put(f.HubID, domain.HubAccess{
			OrgID: a.orgID(f.OrgID), SiteID: f.SiteID, Epoch: f.Epoch(),
		})
	case domain.HubMoved:
		a.hubs.move(f.HubID, f.SiteID)
	case domain.HubReleased:
		a.hubs.remove(f.HubID)
	case domain.HubLogBegun:
		a.hubs.setEpoch(f.HubID, f.Epoch())
	case domain.HubLogRestored:
		a.hubs.setEpoch(f.HubID, f.Epoch())
	}
}

// putKey puts a key in force.
func (a *Index) putKey(key domain.KeyAccess) {
	revoke := make(chan struct{})
	key.Reach.OrgID, key.Revoked = a.orgID(key.Reach.OrgID), revoke
	a.keys[key.ID] = keyAccess{revoke: revoke, KeyAccess: key}
}

// changeKey changes a key, in force or suspended. What was opened with it ends, since it may not be
// allowed any more.
func (a *Index) changeKey(id string, change func(*domain.KeyAccess)) {
	if key, ok := a.keys[id]; ok {
		close(key.revoke)
		change(&key.KeyAccess)
		a.putKey(key.KeyAccess)
	} else if key, ok := a.suspended.keys[id]; ok {
		change(&key)
		a.suspended.keys[id] = key
	}
}

// orgID returns the one copy of an organization's id.
func (a *Index) orgID(id string) string {
	if known, ok := a.orgIDs[id]; ok {
		return known
	}
	a.orgIDs[id] = id
	return id
}
