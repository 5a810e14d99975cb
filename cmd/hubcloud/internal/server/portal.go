package server

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi"
	"hubcloud/httpapi/mail"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/portal/live"
	"hubcloud/streams/directory"
	"hubcloud/streams/hublog"
)

// newPortal makes the pages for people. The public URL and the mailer are known by then.
func (s *Server) newPortal() *portal.Portal {
	commands := apiDirectory{
		Service: s.directory, presence: s.presence, kicks: s.kicks, mailer: s.mailer,
		publicURL: s.bound.PublicURL,
	}
	return portal.New(portal.Config{
		Invitations: s.directory,
		People:      s.access,
		SignIn:      s.signIn,
		ReadModels:  s.store,
		Directory:   portalDirectory{commands},
		KeyUse:      s.keyUse,
		Mails:       portalMails{s.mailer},
		Live: live.New(live.Config{
			ReadModels: s.store, Devices: s.devices, Events: portalEvents{s.logs},
			DisconnectReason: s.disconnectReason,
			StreamLifetime:   s.cfg.StreamLifetime, StreamKeepalive: s.cfg.StreamKeepalive,
			Retention: s.cfg.EventRetention,
			Draining:  s.draining, Freshness: s.freshness, Log: s.logger, Metrics: s.registry,
		}),
		Freshness:   s.freshness,
		Owners:      s.access,
		Devices:     s.devices,
		Commands:    s.commands,
		History:     s.commands,
		Labels:      s.directory,
		PublicURL:   s.bound.PublicURL,
		Environment: s.settings.Environment,
		OpenSignUp:  s.cfg.OpenSignUp,

		LinksPerNetwork: s.cfg.SignInLinksPerNetwork,
		LinksPerAddress: s.cfg.SignInLinksPerAddress,
		Log:             s.logger,
		Metrics:         s.registry,
	})
}

// disconnectReason says why a hub has gone, in the broker's words.
func (s *Server) disconnectReason(hub domain.HubID) *string {
	known, _ := s.presence.Get(hub)
	return known.Reason
}

// signInAddress returns the address that a link to sign in goes to, "" when nobody may have it.
func (s *Server) signInAddress(ctx context.Context, m mail.SignIn) (string, error) {
	return s.portal.SignInAddress(ctx, m.To)
}

// portalDirectory is the directory as the portal needs it: with the domain's own commands.
type portalDirectory struct{ apiDirectory }

// AddHub looks up whether the hub has ever come online, freshly, before it is added.
func (d portalDirectory) AddHub(ctx context.Context, o domain.Origin, add domain.AddHub) error {
	_, err := d.apiDirectory.AddHub(
		ctx, o,
		httpapi.HubAddition{OrgID: add.OrgID, HubID: add.HubID, SiteID: add.SiteID, Name: add.Name},
	)
	return err
}

// UpdateHub moves and renames a hub.
func (d portalDirectory) UpdateHub(
	ctx context.Context, o domain.Origin, change domain.UpdateHub,
) error {
	_, err := d.Service.UpdateHub(ctx, o, directory.UpdateHub(change))
	return err
}

// portalMails sends the portal's mails.
type portalMails struct{ *mail.Mailer }

// SendSignIn puts a mail with a link into the queue.
func (m portalMails) SendSignIn(ctx context.Context, email, link string, expires time.Time) error {
	return m.Mailer.SendSignIn(ctx, mail.SignIn{To: email, Link: link, ExpiresAt: expires})
}

// portalEvents is the hub logs as the portal needs them: with groups behind its own interface.
type portalEvents struct{ *hublog.Logs }

// Group begins to follow the logs of several hubs.
func (e portalEvents) Group() live.EventGroup { return portalGroup{e.NewGroup()} }

// portalGroup is a group of hub logs whose end with the service is told in the portal's words.
type portalGroup struct{ *hublog.Group }

// Next gives events that are there now.
func (g portalGroup) Next(limit int) (domain.HubID, []domain.EncodedEvent, error) {
	hub, events, err := g.Group.Next(limit)
	if errors.Is(err, hublog.ErrClosed) {
		err = live.ErrEventsClosed
	}
	return hub, events, err
}
