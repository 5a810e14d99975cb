package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/cmd/hubcloud/internal/build"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/cmd/hubcloud/otlp"
	"hubcloud/httpapi/mail"
	"hubcloud/httpapi/portal"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/hubbridge/rpc"
	"hubcloud/projections/access"
	"hubcloud/projections/cluster"
	"hubcloud/projections/readmodel"
	"hubcloud/streams"
	"hubcloud/streams/alarmstate"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
	"hubcloud/streams/diskspace"
	"hubcloud/streams/feed"
	"hubcloud/streams/feed/orgfeed"
	"hubcloud/streams/filelock"
	"hubcloud/streams/keyuse"
	"hubcloud/streams/logwriter"
	"hubcloud/streams/replicas"
	"hubcloud/streams/signin"
	"hubcloud/streams/telemetry"
)

const (
	// startGCPercent is GOGC during a start. Most of what a start allocates stays in memory, so
	// that collections find little; at the normal rate they took a tenth of the start.
	startGCPercent = 400

	// shortRetention is the least --event-retention without a warning. The contract has 24 hours.
	shortRetention = time.Hour

	// The time limits of the steps of Stop. Together, with a second for aborted commands, they are
	// at most ten seconds, the grace period of common service managers.
	drainTimeout      = 3 * time.Second
	commandTimeout    = time.Second
	rejectHubsTimeout = time.Second
	brokerTimeout     = 3 * time.Second
	postgresTimeout   = 3 * time.Second
	tracesTimeout     = time.Second
)

// Server is one running replica. Its parts form layers: a part uses only parts of its own and of
// former layers. Parts that the replica's roles do not need are nil.
type Server struct {
	cfg      Config
	dir      datadir.Dir
	logger   *slog.Logger
	registry *prometheus.Registry
	health   *health
	traces   otlp.Sender
	bound    datadir.Endpoints
	files    fileShares
	// failed has the first failure of a loop.
	failed chan error

	// postponed are files that could not be written because the disk was full.
	postponedMu sync.Mutex
	postponed   []func() error

	// Infrastructure. broker and postgres are nil when external ones are configured.
	lock        *filelock.Lock
	authority   *identity.Authority
	postgres    *cluster.Cluster
	postgresURL string
	broker      *broker.Server
	space       *diskspace.Guard
	credentials streams.Credentials
	conns       *streams.Conns
	reads       *streams.Conns // separate connections, so that long reads do not delay writes
	buckets     *streams.Buckets
	settings    installation.Settings

	// Read models, and the directory service with the parts that it calls.
	replicaID    string
	directoryLog *directory.Log
	store        *readmodel.Store
	access       *access.Index
	presence     *presence.View
	disconnector *identity.Disconnector
	signIn       *signin.Store
	directory    *directory.Service
	reach        *replicas.Reach
	freshness    *replicas.Freshness

	// Hub link. Replicas without the role bridge have no bridge, replicas without the role api only
	// hub logs and bridge.
	journals *logwriter.Router
	hubLogs  *feed.Logs
	orgFeed  *orgfeed.Feed
	caller   *rpc.Caller
	devices  *rpc.Devices
	keys     *idempotency.Keys
	commands *commands.Commands
	bridge   *hubbridge.Bridge

	// HTTP, with the role api.
	keyUse      *keyuse.Tracker
	feedReaders *orgfeed.Registry
	mailer      *mail.Mailer
	// alarmState has what was mailed about alarms.
	alarmState *alarmstate.Store
	portal     *portal.Portal

	// The groups of loops, in the reverse order of their stop.
	foundation *group // everything but the bridge and the client
	bridging   *group // the bridge
	asking     *group // what asks hubs for their devices
	clients    *group // the Client that Run was called with

	// draining is closed when Stop begins: event streams and long-polls then end.
	draining chan struct{}
	servers  []*http.Server
	// certificate is that of the public port; nil without HTTPS.
	certificate certificateSource
}

// Directory returns the service that changes organizations, hubs, keys and members.
func (s *Server) Directory() *directory.Service { return s.directory }

// Presence returns the connection status of all hubs.
func (s *Server) Presence() *presence.View { return s.presence }

// SignIn returns the store of the portal's links and sessions.
func (s *Server) SignIn() *signin.Store { return s.signIn }

// Endpoints returns the addresses at which the server listens.
func (s *Server) Endpoints() datadir.Endpoints { return s.bound }

// Start starts a replica and returns once it is ready. The caller must then call Stop. If Start
// fails, it has already stopped the parts that it had started.
func Start(ctx context.Context, cfg Config, logger *slog.Logger) (_ *Server, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, usage.Wrap(err)
	}
	if cfg.EventRetention < shortRetention {
		logger.Warn(
			"events are kept for a very short time (--event-retention): readers that are away for "+
				"longer get 410, and hubs' last states are lost", "event_retention",
			cfg.EventRetention,
		)
	}
	began := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(startGCPercent))
	starting, cancel := context.WithTimeoutCause(ctx, cfg.StartTimeout, errStartTimeout)
	defer cancel()
	failed := make(chan error, 1)
	s := &Server{
		cfg: cfg, dir: datadir.Dir(cfg.DataDir), logger: logger,
		registry: prometheus.NewRegistry(), failed: failed, draining: make(chan struct{}),
		foundation: newGroup(failed), bridging: newGroup(failed), asking: newGroup(failed),
		clients: newGroup(failed),
	}
	if s.certificate, err = s.openCertificate(); err != nil {
		return nil, usage.Wrap(err)
	}
	if s.traces, err = otlp.Start(starting, build.Current().Version, logger); err != nil {
		return nil, usage.Wrap(err)
	}
	if s.traces.Tracer().On() {
		s.logger = slog.New(telemetry.LogHandler(logger.Handler()))
	}
	s.health = newHealth(s)
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"infrastructure", s.startInfrastructure},
		{"read models", s.startReadModels},
		{"hub link", s.startHubLink},
		{"http", s.startHTTP},
	} {
		stepBegan := time.Now()
		if err := step.run(starting); err != nil {
			if errors.Is(context.Cause(starting), errStartTimeout) &&
				!errors.Is(err, errStartTimeout) {
				err = fmt.Errorf(
					"%w: %s (--start-timeout) were not enough for the part %q: %w", errStartTimeout,
					cfg.StartTimeout, step.name, err,
				)
			}
			return nil, err
		}
		logger.Debug(
			"started", "part", step.name, "duration_ms", time.Since(stepBegan).Milliseconds(),
		)
	}
	// A full disk may delay the end of the start beyond the start timeout.
	if err := s.finishStart(ctx); err != nil {
		return nil, err
	}
	logger.Info(
		"ready", "http", s.bound.HTTP, "mqtt", s.bound.MQTT, "nats", s.bound.NATS,
		"admin", s.bound.Admin, "public_url", s.bound.PublicURL,
		"duration_ms", time.Since(began).Milliseconds(),
	)
	if err := notifyServiceManager("READY=1"); err != nil {
		logger.Warn("service manager not notified", "state", "READY=1", "error", err)
	}
	return s, nil
}

// Stop stops the server in this order:
//
//  1. /readyz answers 503; event streams and long-polls end.
//  2. The HTTP servers finish requests under way.
//  3. Commands whose clients have gone finish; no more calls to hubs start.
//  4. The client of Run stops.
//  5. The embedded broker rejects new hub connections.
//  6. The bridge stops between two messages of a hub; then the disconnector closes.
//  7. The read models stop between two events, and the other loops with them.
//  8. The hub logs, the database pool, the broker connections, the broker and the private database
//     close.
//  9. The last traces are sent.
//
// Steps 2, 3, 5, 8 and 9 have time limits. The loops stopped in steps 4, 6 and 7 return promptly
// when their context ends. Together they take at most ten seconds. Stop must be called once.
func (s *Server) Stop() {
	began := time.Now()
	close(s.draining)
	s.stopHTTP()
	s.stopCalls()
	s.clients.stop()
	s.rejectHubs()
	s.bridging.stop()
	if s.disconnector != nil {
		s.disconnector.Close()
	}
	s.foundation.stop()
	if s.orgFeed != nil {
		s.orgFeed.Close()
	}
	if s.hubLogs != nil {
		s.hubLogs.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	s.stopInfrastructure()
	s.stopTraces()
	s.logger.Info("stopped", "duration_ms", time.Since(began).Milliseconds())
}

// rejectHubs makes the embedded broker reject new hub connections. It runs while the callout still
// answers, so that no connecting hub waits for an answer that never comes.
func (s *Server) rejectHubs() {
	if s.broker == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rejectHubsTimeout)
	defer cancel()
	s.broker.RejectHubs(ctx)
}

// stopTraces sends the spans that are still in memory.
func (s *Server) stopTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
	defer cancel()
	if err := s.traces.Stop(ctx); err != nil {
		s.logger.Warn("last traces not sent", "error", err)
	}
}
