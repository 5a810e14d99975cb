package server

import (
	"context"
	"fmt"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/httpapi/oidc"
	"hubcloud/httpapi/portal"
	"hubcloud/hubbridge/ingest"
)

// portalConfig returns the configuration of the portal, without its Mails. It needs the public URL.
func (s *web) portalConfig() portal.Config {
	cfg := portal.Config{
		Invitations: s.directory,
		People:      s.access,
		SignIn:      s.signIn,
		ReadModels:  models{s.store, s.directory},
		Directory:   s.directory,
		KeyUse:      s.keyUse,
		Hubs:        s.access,
		Devices:     s.devices,
		Commands:    s.commands,
		History:     s.commands,
		Labels:      s.directory,
		Events:      s.hubLogs,
		Feed:        feeds{s.orgFeed},
		Book:        s.store,
		Faults:      portalFaults{ingest.NewFaultReader(s.conns)},
		Reported:    s.store,
		Readers:     s.feedReaders,
		Webhooks:    s.webhooks,
		Codes:       s.codes,
		Unsubscribe: s.alarmState,
		Freshness:   s.freshness,

		DisconnectReason:  s.disconnectReason,
		AlarmMailsPerHour: alarmMailsPerHour,
		Retention:         s.cfg.EventRetention,
		StreamLifetime:    s.cfg.StreamLifetime,
		Shares:            s.shares,
		StreamKeepalive:   s.cfg.StreamKeepalive,
		Draining:          s.draining,
		PublicURL:         s.bound.PublicURL,
		Environment:       s.settings.Environment,
		OpenSignUp:        s.cfg.OpenSignUp,
		Logger:            s.logger,
		Metrics:           s.registry,
	}
	if s.provider != nil { // not a nil pointer in an interface
		cfg.Provider = s.provider
	}
	return cfg
}

// startProvider starts the identity provider of --oidc. It needs the public URL. The start does not
// wait for the provider.
func (s *web) startProvider() error {
	if s.cfg.OIDC == "" {
		return nil
	}
	cfg, err := oidc.ReadConfig(s.cfg.OIDC)
	if err != nil {
		return fmt.Errorf("--oidc: %w", err)
	}
	s.provider = oidc.New(cfg, oidc.Options{
		RedirectURL: s.bound.PublicURL + "/portal/oidc/callback", UserAgent: installation.UserAgent(),
		Logger: s.logger,
	})
	s.run(stopLoops, "identity provider", s.provider.Run)
	return nil
}

// validateSignIn checks the file of --oidc.
func (c Config) validateSignIn() error {
	if c.OIDC == "" {
		return nil
	}
	if _, err := oidc.ReadConfig(c.OIDC); err != nil {
		return fmt.Errorf("--oidc: %w", err)
	}
	return nil
}

// disconnectReason returns the broker's reason for the hub's last disconnection, nil if unknown.
func (s *web) disconnectReason(hub domain.HubID) *string {
	known, _ := s.presence.Get(hub)
	return known.Reason
}

// portalFaults adapts the faults of hubs to the portal's interface.
type portalFaults struct{ reader *ingest.FaultReader }

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
		if fault.Reason == ingest.FaultNoHello || fault.Reason == ingest.FaultNoProgress {
			silent[fault.HubID] = fault.Since
		}
	}
	return silent, err
}
