package main

import (
	"context"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/directory"
	"hubcloud/streams/hublog"
)

// apiDirectory is the directory as the API needs it: with what the bridge knows of a hub's connection.
type apiDirectory struct {
	*directory.Service
	presence *presence.View
	kicks    *identity.Kicker
}

// AddHub looks up whether the hub has ever come online, freshly, before it is added.
func (d apiDirectory) AddHub(ctx context.Context, o domain.Origin, add httpapi.HubAddition) error {
	seen, ever, err := d.presence.Fetch(ctx, add.HubID)
	if err != nil {
		return err
	}
	_, err = d.Service.AddHub(ctx, o, directory.AddHub{
		OrgID: add.OrgID, HubID: add.HubID, SiteID: add.SiteID, Name: add.Name, Ever: ever, Connected: ever && seen.Online,
	})
	return err
}

// UpdateHub moves and renames a hub.
func (d apiDirectory) UpdateHub(ctx context.Context, o domain.Origin, change httpapi.HubChange) error {
	_, err := d.Service.UpdateHub(ctx, o, directory.UpdateHub{
		OrgID: change.OrgID, HubID: change.HubID, SetName: change.SetName, Name: change.Name, SiteID: change.SiteID,
	})
	return err
}

// ResetLink revokes first and cuts second: a hub that connects in between is refused already.
func (d apiDirectory) ResetLink(ctx context.Context, o domain.Origin, org string, hub domain.HubID) error {
	revoked, err := d.Service.RevokeCertificate(ctx, o, org, hub)
	if err != nil || revoked == "" {
		return err
	}
	return d.kicks.Kick(ctx, hub)
}

// apiEvents is the hub logs as the API needs them: with readers behind its own interface.
type apiEvents struct{ *hublog.Logs }

// Follow reads what follows a cursor, as it comes.
func (e apiEvents) Follow(ctx context.Context, hub domain.HubID, after string) (httpapi.EventReader, error) {
	reader, err := e.Logs.Follow(ctx, hub, after)
	if err != nil {
		return nil, err
	}
	return reader, nil
}
