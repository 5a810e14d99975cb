package access

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
)

// load loads the read models. If it fails, Run reads all events of the directory, which takes
// longer.
func (a *Index) load(ctx context.Context) {
	if a.cfg.Store == nil {
		return
	}
	begun := time.Now()
	loading, cancel := context.WithTimeout(ctx, schema.CommitTimeout)
	defer cancel()
	snapshot, err := a.cfg.Store.AccessSnapshot(loading)
	if err != nil {
		if ctx.Err() == nil {
			a.logger.Warn("read models not loaded; loading from the directory", "error", err)
		}
		return
	}
	a.restore(snapshot)
	a.applied.Advance(snapshot.Sequence)
	a.logger.Info(
		"keys and hubs loaded from the read models", "keys", len(snapshot.Keys),
		"hubs", len(snapshot.Hubs), "sequence", snapshot.Sequence,
		"duration_ms", time.Since(begun).Milliseconds(),
	)
}

func (a *Index) restore(snapshot readmodel.AccessSnapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range snapshot.Keys {
		scopes := make([]domain.Scope, len(key.Scopes))
		for i, scope := range key.Scopes {
			scopes[i] = domain.Scope(scope)
		}
		if len(key.SecretHash) != 32 {
			continue // it matches no secret
		}
		limits := readmodel.LimitsOf(key.Sites, key.ExpiresAt)
		a.putKey(domain.KeyAccess{
			ID: key.ID, Reach: domain.Reach{OrgID: key.OrgID, Sites: limits.Sites},
			Environment: key.Environment, Scopes: scopes, ExpiresAt: limits.ExpiresAt,
			SecretHash: [32]byte(key.SecretHash),
			Former:     readmodel.FormerSecrets(key.FormerSecrets),
		})
	}
	a.hubs.changed.sendAll()
	a.hubs = newHubs()
	for _, hub := range snapshot.Hubs {
		epoch, err := domain.ParseEpochID(hub.Epoch)
		if err != nil {
			a.logger.Error("unreadable epoch in the read models", "hub_id", hub.ID, "error", err)
		}
		a.hubs.put(domain.HubID(hub.ID), domain.HubAccess{
			OrgID: a.orgID(hub.OrgID), SiteID: hub.SiteID,
			Epoch: domain.Epoch{
				ID: epoch, After: uint64(hub.LogAfter),
				Former: domain.ParseFormerEpochs(hub.LogFormer),
			},
		})
	}
	for _, org := range snapshot.Orgs {
		a.members.orgNames[org.ID] = org.Name
	}
	for _, m := range snapshot.Members {
		a.members.add(m.OrgID, m.ID, m.Email, domain.Role(m.Role))
	}
	a.eventID = snapshot.EventID
}

// restart empties the Index. Keys and memberships that were handed out before count as revoked.
func (a *Index) restart() {
	a.mu.Lock()
	for _, key := range a.keys {
		close(key.revoke)
	}
	a.members.endAll()
	a.clear()
	a.mu.Unlock()
	a.applied.Reset()
}
