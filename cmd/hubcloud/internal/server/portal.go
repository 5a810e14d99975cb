package server

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/httpapi/portal/live"
	"hubcloud/hubbridge/hubfaults"
	"hubcloud/streams/hublog"
)

// newPortal returns the portal. It needs the public URL and the mailer.
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
			ReadModels: s.store, Devices: s.devices, Events: portalEvents{s.hubLogs},
			States:           s.store,
			DisconnectReason: s.disconnectReason,
			StreamLifetime:   s.cfg.StreamLifetime, StreamKeepalive: s.cfg.StreamKeepalive,
			Retention: s.cfg.EventRetention,
			Draining:  s.draining, Freshness: s.freshness, Logger: s.logger, Metrics: s.registry,
		}),
		Freshness:   s.freshness,
		Owners:      s.access,
		Devices:     s.devices,
		Commands:    s.commands,
		History:     s.commands,
		Labels:      s.directory,
		Faults:      portalFaults{hubfaults.NewReader(s.conns)},
		Reported:    s.store,
		Retention:   s.cfg.EventRetention,
		PublicURL:   s.bound.PublicURL,
		Environment: s.settings.Environment,
		OpenSignUp:  s.cfg.OpenSignUp,

		LinksPerNetwork: s.cfg.SignInLinksPerNetwork,
		LinksPerAddress: s.cfg.SignInLinksPerAddress,
		Logger:          s.logger,
		Metrics:         s.registry,
	})
}

// disconnectReason returns the broker's reason for the hub's last disconnection, nil if unknown.
func (s *Server) disconnectReason(hub domain.HubID) *string {
	known, _ := s.presence.Get(hub)
	return known.Reason
}

// portalFaults adapts the faults of hubs to the portal's interface.
type portalFaults struct{ reader *hubfaults.Reader }

// HubFaults asks the replica that serves the hub.
func (f portalFaults) HubFaults(
	ctx context.Context, hub domain.HubID,
) (faults []portal.HubFault, err error) {
	known, err := f.reader.Hub(ctx, hub)
	for _, fault := range known {
		faults = append(faults, portal.HubFault{Reason: string(fault.Reason), Since: fault.Since})
	}
	return faults, err
}

// SilentHubs asks the replicas that serve the hubs of all shards.
func (f portalFaults) SilentHubs(ctx context.Context) (map[domain.HubID]time.Time, error) {
	known, _, err := f.reader.All(ctx)
	silent := map[domain.HubID]time.Time{}
	for _, fault := range known {
		if fault.Reason == hubfaults.NoHello || fault.Reason == hubfaults.NoProgress {
			silent[fault.HubID] = fault.Since
		}
	}
	return silent, err
}

// portalEvents adapts the hub logs to the portal's interface.
type portalEvents struct{ *hublog.Logs }

// Group returns a group that follows the logs of several hubs.
func (e portalEvents) Group() live.EventGroup { return portalGroup{e.NewGroup()} }

// portalGroup returns live.ErrEventsClosed in place of hublog.ErrClosed.
type portalGroup struct{ *hublog.Group }

// Next returns up to limit new events of one hub.
func (g portalGroup) Next(
	ctx context.Context, limit int,
) (domain.HubID, []domain.EncodedEvent, error) {
	hub, events, err := g.Group.Next(ctx, limit)
	if errors.Is(err, hublog.ErrClosed) {
		err = live.ErrEventsClosed
	}
	return hub, events, err
}
