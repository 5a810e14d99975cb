package server

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/httpapi/mail"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/hublog"
)

// apiDirectory is the directory as the API needs it: with what the bridge knows of a hub's
// connection, and with the mail that invites.
type apiDirectory struct {
	*directory.Service
	presence  *presence.View
	kicks     *identity.Kicker
	mailer    *mail.Mailer
	publicURL string
}

// AddHub looks up whether the hub has ever come online, freshly, before it is added.
func (d apiDirectory) AddHub(
	ctx context.Context, o domain.Origin, add httpapi.HubAddition,
) (domain.HubState, error) {
	seen, ever, err := d.presence.Fetch(ctx, add.HubID)
	if err != nil {
		return domain.HubState{}, streams.Unavailable(
			err,
			"it is not known at the moment whether the hub has ever come online; nothing was changed",
		)
	}
	return d.Service.AddHub(ctx, o, directory.AddHub{
		OrgID: add.OrgID, HubID: add.HubID, SiteID: add.SiteID, Name: add.Name, Ever: ever,
		Connected: ever && seen.Online,
	})
}

// UpdateHub moves and renames a hub.
func (d apiDirectory) UpdateHub(
	ctx context.Context, o domain.Origin, change httpapi.HubChange,
) (domain.HubState, error) {
	return d.Service.UpdateHub(ctx, o, directory.UpdateHub{
		OrgID: change.OrgID, HubID: change.HubID, SetName: change.SetName, Name: change.Name,
		SiteID: change.SiteID,
	})
}

// ResetLink revokes first and cuts second: a hub that connects in between is refused already.
func (d apiDirectory) ResetLink(
	ctx context.Context, o domain.Origin, org string, hub domain.HubID,
) error {
	revoked, err := d.Service.RevokeCertificate(ctx, o, org, hub)
	if err != nil || revoked == "" {
		return err
	}
	return streams.Unavailable(
		d.kicks.Kick(ctx, hub),
		"the hub's certificate is revoked, and its connection may stand for some seconds more; "+
			"the request can be repeated",
	)
}

// Invite records the invitation, then puts its mail into the queue. Whoever hears of a failure in
// between invites again, which replaces the first.
func (d apiDirectory) Invite(
	ctx context.Context, o domain.Origin, org, email string, role domain.Role,
) (domain.Invitation, error) {
	invitation, orgName, token, err := d.Service.Invite(ctx, o, org, email, role)
	if err != nil {
		return domain.Invitation{}, err
	}
	return invitation, d.mailer.SendInvitation(ctx, mail.Invitation{
		ID: invitation.ID, OrgID: org, To: invitation.Email, OrgName: orgName,
		Role: invitation.Role,
		Link: d.publicURL + "/portal/invitations/" + token, ExpiresAt: invitation.ExpiresAt,
	})
}

// apiEvents is the hub logs as the API needs them: with readers behind its own interface.
type apiEvents struct{ *hublog.Logs }

// Follow reads what follows a cursor, as it comes.
func (e apiEvents) Follow(
	ctx context.Context, hub domain.HubID, after string,
) (httpapi.EventReader, error) {
	reader, err := e.Logs.Follow(ctx, hub, after)
	if err != nil {
		return nil, err
	}
	return apiReader{reader}, nil
}

// apiReader is a reader of a hub log whose end with the service is told in the API's words.
type apiReader struct{ *hublog.Reader }

// Next gives the events that are there now.
func (r apiReader) Next(limit int) ([]domain.EncodedEvent, error) {
	events, err := r.Reader.Next(limit)
	if errors.Is(err, hublog.ErrClosed) {
		err = httpapi.ErrEventsClosed
	}
	return events, err
}

// grantsBus tells the other replicas what this one grants, over the broker.
type grantsBus struct {
	nc      *nats.Conn
	replica string
}

// Publish tells the others.
func (b grantsBus) Publish(message []byte) error {
	return b.nc.Publish(streams.GrantsSubject(b.replica), message)
}

// Subscribe hears the others.
func (b grantsBus) Subscribe(fn func(message []byte)) (stop func(), err error) {
	own := streams.GrantsSubject(b.replica)
	sub, err := b.nc.Subscribe(streams.GrantsSubject("*"), func(msg *nats.Msg) {
		if msg.Subject != own {
			fn(msg.Data)
		}
	})
	if err != nil {
		return nil, err
	}
	// fails only with the connection, which ends it too
	return func() { _ = sub.Unsubscribe() }, nil
}
