package server

import (
	"errors"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/portal/live"
	"hubcloud/streams/hublog"
)

// newPortal makes the pages for people. The public URL and the mailer are known by then.
func (s *Server) newPortal() *portal.Portal {
	return portal.New(portal.Config{
		Invitations: s.directory,
		People:      s.access,
		SignIn:      s.signIn,
		ReadModels:  s.store,
		Directory:   s.directory,
		KeyUse:      s.keyUse,
		Mails:       s.mailer,
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
