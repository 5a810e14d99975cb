package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/statelog"
	"hubcloud/streams/book"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed"
	"hubcloud/streams/feed/orgfeed"
	"hubcloud/streams/once"
	"hubcloud/streams/tap"
	"hubcloud/streams/views"
)

// bridgePoll is the pause between two checks of whether the bridge is ready.
const bridgePoll = 5 * time.Millisecond

// hubLink is the layer of the hubs: their logs, and calls to them. Replicas without the role bridge
// have no bridge; replicas without the role api have no devices, keys and commands.
type hubLink struct {
	*readModels
	views     *views.Views
	hubLogs   *feed.Logs
	orgFeed   *orgfeed.Feed
	directory *directory.Service
	// invitations mails for the directory; its Mailer is set by the next layer, which needs the
	// directory.
	invitations *invitationMailer
	bridge      *hubbridge.Bridge
	caller      *commands.Caller
	devices     *commands.Devices
	keys        *once.Keys
	commands    *commands.Commands
	// virtualHubs run the virtual hubs of organizations.
	virtualHubs virtualHubs
	// bookKeeper is set by the next layer, which has the words of entries.
	bookKeeper atomic.Pointer[book.Keeper]
}

// startHubLink starts the hub logs, the directory service, the presence view, the calls to hubs
// (role api), the bridge (role bridge) and the callout, in this order. The callout is last: the
// broker accepts hubs only once the callout answers, and by then the bridge handles their messages.
func (m *readModels) startHubLink(ctx context.Context) (_ *hubLink, err error) {
	s := &hubLink{readModels: m, invitations: &invitationMailer{}}
	if err := s.startHubLogs(); err != nil {
		return nil, err
	}
	s.directory = s.newDirectory()
	s.run(stopLoops, "presence", s.presence.Run)
	if s.cfg.has(roleBridge) {
		if s.bridge, err = s.newBridge(); err != nil {
			return nil, err
		}
		s.health.add("bridge", s.checkBridge)
	}
	if err := s.startCaller(); err != nil {
		return nil, err
	}
	if s.cfg.has(roleAPI) {
		if err := s.startCalls(ctx); err != nil {
			return nil, err
		}
	}
	if s.bridge != nil {
		if err := s.startBridge(ctx); err != nil {
			return nil, err
		}
	}
	return s, s.startCallout()
}

// startHubLogs opens the hub logs, which are the events of the journals, and the views that are
// written from them.
func (s *hubLink) startHubLogs() (err error) {
	viewsCfg := views.Config{
		Conns: s.conns, Journal: s.journals, Retention: s.cfg.EventRetention,
		ServerStarted: s.reach.ServerStarted, LostEnd: s.beginLostLog, IsReleased: s.isReleased,
		Logger: s.logger, Metrics: s.registry,
	}
	if s.broker != nil {
		viewsCfg.HasSubscribers = s.broker.HasSubscribers
	}
	if s.views, err = views.New(viewsCfg); err != nil {
		return err
	}
	s.hubLogs, err = feed.New(s.conns, feed.Config{
		Journal: s.journals, Retention: s.cfg.EventRetention, Reads: s.reads,
		Epoch: s.epoch, Refresh: s.access.Refresh, Lost: s.reach.Lost,
		CacheBytes: s.cfg.LiveCache << 20, RingBytes: s.cfg.LiveCache << 20, Logger: s.logger,
		Metrics: s.registry, Tracer: s.traces.Tracer(),
	})
	if err != nil {
		return err
	}
	s.atStop(closeLogs, s.hubLogs.Close)
	s.orgFeed, err = orgfeed.New(orgfeed.Config{
		Logs: s.hubLogs, Hubs: s.access, Journal: s.journals, Retention: s.cfg.EventRetention,
		Shares: s.shares, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.atStop(closeFeeds, s.orgFeed.Close)
	s.access.OnRelease(func(hub domain.HubID) {
		s.hubLogs.Released(hub)
		s.virtualHubs.change(hub)
		s.views.Released(hub)
		if books := s.bookKeeper.Load(); books != nil {
			books.Released()
		}
	})
	s.run(stopLoops, "journals", s.journals.Run)
	s.run(stopLoops, "hub logs", s.hubLogs.Run)
	s.run(stopLoops, "organization feeds", s.orgFeed.Run)
	s.reportUnrecovered()
	return nil
}

// newDirectory returns the directory service. Its changes wait for the read models and for the
// other replicas.
func (s *hubLink) newDirectory() *directory.Service {
	return directory.NewService(s.directoryLog, directory.ServiceConfig{
		Environment: s.settings.Environment, InvitationTTL: s.cfg.InvitationTTL, Now: time.Now,
		AwaitReadModels: s.store.WaitFor, AwaitReplicas: s.barrier.Wait,
		Presence: s.presence, Connections: s.disconnector, VirtualSecret: s.VirtualSecret,
		Mailer: s.invitations, RateLimiter: s.signIn, Logs: s.hubLogs,
		Quotas: directory.Quotas{
			SitesPerOrg: s.cfg.SitesPerOrg, MembersPerOrg: membersPerOrg,
			ChangesPerHour: changesPerHour, PreferencesPerDay: preferencesPerDay,
			KeysPerOrg: keysPerOrg, KeysOf: s.access.KeysOf,
			OrgsPerAccount: orgsPerAccount, OwnedBy: s.access.OwnedBy,
			InvitationsPerHour:    s.cfg.InvitationsPerOrg,
			InvitationsPerAddress: s.cfg.InvitationsPerAddress,
		},
		Admit:           s.space.Admit,
		HubCertificates: hubFacts, HubLogs: hubFacts, Shares: s.shares,
		Metrics: s.registry, Tracer: s.traces.Tracer(),
	})
}

// reportUnrecovered logs the streams whose messages are on the embedded broker's disk but whose
// configuration could not be read. Streams of hubs are written again from the journal.
func (s *hubLink) reportUnrecovered() {
	if s.broker == nil {
		return
	}
	folders, err := s.broker.NotRecovered()
	if err != nil {
		s.logger.Warn("streams on disk not compared with the broker's", "error", err)
	}
	for _, folder := range folders {
		if _, ok := folder.Hub(); !ok {
			s.logger.Error(
				"stream not recovered: its messages are on disk", "account", folder.Account,
				"stream", folder.Stream,
			)
		}
	}
}

// beginLostLog begins a new epoch of a hub's log of which the journal has lost what was after the
// sequence kept, so that no cursor of a lost event points to one that gets its sequence later. It
// returns the epoch that has ended, none for a hub without an organization, whose log has no
// readers.
func (s *hubLink) beginLostLog(
	ctx context.Context, hub domain.HubID, kept uint64,
) (ended domain.EpochID, err error) {
	origin := domain.Origin{Actor: domain.Actor{Kind: domain.ActorService}}
	ended, err = s.directory.RestoreLog(ctx, origin, hub, kept)
	var rejected *domain.Error
	if errors.As(err, &rejected) && rejected.Code == domain.CodeNotFound {
		return domain.EpochID{}, nil
	}
	if err != nil {
		return ended, err
	}
	return ended, s.access.Refresh(ctx)
}

// isReleased reports whether no organization has a hub. It asks the directory's log: the index of
// this replica lacks hubs until it is loaded.
func (s *hubLink) isReleased(ctx context.Context, hub domain.HubID) (bool, error) {
	if s.orgOf(hub) != "" {
		return false, nil
	}
	state, _, err := s.directory.Hub(ctx, hub)
	return err == nil && state.Registered && state.OrgID == "", err
}

// startCaller creates what sends requests to hubs, for the API and for the bridge.
func (s *hubLink) startCaller() (err error) {
	s.caller, err = commands.NewCaller(s.conns, s.presence, commands.CallerConfig{
		Timeout: s.cfg.HubTimeout, Logger: s.logger, Metrics: s.registry, Tracer: s.traces.Tracer(),
		OnRequest: s.onRequest,
	})
	if err != nil {
		return err
	}
	s.atStop(stopCalls, s.caller.Close)
	return nil
}

// startCalls creates what the API needs to send requests and commands to hubs. Requests go over the
// broker, so the replica needs no bridge.
func (s *hubLink) startCalls(ctx context.Context) (err error) {
	err = s.retry(ctx, brokerStorage, func(ctx context.Context) error {
		return s.buckets.SetIdempotencyWindow(ctx, s.conns, s.cfg.IdempotencyWindow)
	})
	if err != nil {
		return err
	}
	calls := commands.NewCallPool(s.shares, commands.CallLimits)
	s.devices = commands.NewDevices(s.caller, calls, s.orgOf)
	s.keys, err = once.New(s.conns, once.Config{
		ReplicaID: s.replicaID, Window: s.cfg.IdempotencyWindow, Shares: s.shares,
		Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.commands, err = commands.New(s.hubLogs, s.devices, commands.Config{
		Keys: s.keys, Admit: s.space.Admit, HubTimeout: s.cfg.HubTimeout, Calls: calls,
		Shares: s.shares, PerHour: commandsPerHour, Logger: s.logger,
		Metrics: s.registry, Tracer: s.traces.Tracer(),
	})
	if err != nil {
		return err
	}
	s.atStop(stopCommands, func() {
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		s.commands.Close(ctx)
		s.keys.Close()
	})
	return nil
}

// newBridge returns the bridge of this replica's groups of shards.
func (s *hubLink) newBridge() (*hubbridge.Bridge, error) {
	return hubbridge.New(
		s.conns, s.buckets, s.journals, s.views, s.hubLogs, s.directory, s.access, s.presence,
		hubbridge.Config{
			ReplicaID: s.replicaID, Retention: s.cfg.EventRetention, Admit: s.space.Admit,
			RoutesChanged: s.reach.RoutesChanged, Isolated: s.reach.Isolated,
			Budget: ingest.NewBudget(ingest.BudgetConfig{
				Conns: s.conns, Ownership: s.access, DiskBytes: s.diskBytes(), Shares: s.shares,
				Logger: s.logger,
			}),
			Logger: s.logger, Metrics: s.registry, Tracer: s.traces.Tracer(),
		},
	)
}

// diskBytes returns how much of the embedded broker's disk events may take; 0 if the disk is not
// known.
func (s *hubLink) diskBytes() int64 {
	disk := s.space.State()
	return disk.Size - disk.Reserve
}

// startBridge starts the bridge and waits until it holds the leases of its shards.
func (s *hubLink) startBridge(ctx context.Context) error {
	s.run(stopBridge, "bridge", s.bridge.Run)
	if err := s.startStateLog(); err != nil {
		return err
	}
	if s.broker != nil {
		s.run(stopBridge, "violations", s.reportViolations)
	}
	return s.retry(ctx, "the leases of its shards", s.waitForBridge)
}

// startStateLog starts what asks the hubs of this replica's shards for their devices.
func (s *hubLink) startStateLog() error {
	states, err := statelog.New(statelog.Config{
		Logs: s.hubLogs, Journals: s.journals, Devices: commands.NewDevices(s.caller, nil, s.orgOf),
		Hubs: s.access, Serves: s.bridge.Serves, Online: s.presence.Online,
		InDoubt: s.store.HubsInDoubt,
		ReportFault: func(hub domain.HubID, detail string) {
			s.bridge.ReportFault(hub, ingest.FaultUnreadableMessages, detail)
		},
		Retention: s.cfg.EventRetention, MinInterval: s.cfg.HubReadInterval, Logger: s.logger,
		Metrics: s.registry,
	})
	if err != nil {
		return err
	}
	s.access.OnAdd(func(hub domain.HubID) {
		states.Added(hub)
		s.virtualHubs.change(hub)
	})
	s.run(stopQuestions, "device reads", states.Run)
	return nil
}

// waitForBridge waits until the bridge has the leases of its shards.
func (s *hubLink) waitForBridge(ctx context.Context) error {
	ticker := time.NewTicker(bridgePoll)
	defer ticker.Stop()
	for {
		missing := s.bridge.Ready()
		if missing == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), missing)
		case err := <-s.failed:
			return finalError{err}
		case <-ticker.C:
		}
	}
}

// startCallout starts the service that decides for the broker which hubs and taps may connect.
func (s *hubLink) startCallout() error {
	callout, err := identity.NewCallout(identity.CalloutConfig{
		Conns: s.conns, Credentials: s.credentials, Directory: s.directory,
		Taps:    tap.NewUsers(s.conns.Cloud, s.buckets.Installation),
		Confirm: s.freshness.Confirm, Logger: s.logger, Metrics: s.registry,
		HubConnections: hubConnections, Rejections: s.rejections, Shares: s.shares,
	})
	if err != nil {
		return err
	}
	s.run(stopLoops, "callout", callout.Run)
	return nil
}

// orgOf returns the organization that has the hub; "" for none.
func (s *hubLink) orgOf(hub domain.HubID) string {
	owner, _ := s.access.Hub(hub)
	return owner.OrgID
}

// onRequest counts a request to a hub for the log line of the hub's session, which this replica's
// bridge writes if it serves the hub. The service's own questions do not count.
func (s *hubLink) onRequest(hub domain.HubID, id string) {
	if s.bridge != nil && !strings.HasPrefix(id, statelog.RequestPrefix) {
		s.bridge.CountRequest(hub)
	}
}

// epoch returns the epoch of a hub's event log; false for a hub that no organization has.
func (s *hubLink) epoch(hub domain.HubID) (domain.Epoch, bool) {
	access, ok := s.access.Hub(hub)
	return access.Epoch, ok
}
