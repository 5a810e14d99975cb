package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/cmd/hubcloud/otlp"
	"hubcloud/httpapi/mail"
	"hubcloud/httpapi/portal"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/hubbridge/rpc"
	"hubcloud/projections"
	"hubcloud/projections/cluster"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
	"hubcloud/streams/diskspace"
	"hubcloud/streams/hublog"
	"hubcloud/streams/keyuse"
	"hubcloud/streams/outbox"
	"hubcloud/streams/signin"
	"hubcloud/streams/telemetry"
)

const (
	// startGCPercent is how much the memory may grow between two garbage collections during a
	// start, in percent.
	startGCPercent = 400
	// What an orderly stop may take, by part; all together stay below ten seconds.
	drainTimeout   = 3 * time.Second
	commandTimeout = time.Second
	refuseTimeout  = time.Second
	brokerTimeout  = 3 * time.Second
	pgTimeout      = 3 * time.Second
	tracesTimeout  = time.Second
)

// service is everything that one process runs. Its parts stand in layers, each on those before it:
// they start in this order and stop in the reverse one.
type service struct {
	flags    *serviceFlags
	dir      dataDir
	log      *slog.Logger
	registry *prometheus.Registry
	health   *health
	traces   otlp.Sender
	bound    endpoints
	files    fileShares
	failed   chan error

	// later writes the files that a full disk had no room for.
	laterMu sync.Mutex
	later   []func() error

	// The ground: the data directory, the database and the broker, each our own or somebody else's.
	lock        *os.File
	authority   *identity.Authority
	postgres    *cluster.Cluster
	postgresURL string
	broker      *broker.Server
	space       *diskspace.Guard
	credentials streams.Credentials
	conns       *streams.Conns
	reads       *streams.Conns
	buckets     *streams.Buckets
	settings    settings
	replicaID   string

	// What is built on it.
	events    *directory.Log
	directory *directory.Service
	store     *projections.Store
	access    *projections.Access
	reach     *streams.Reach
	freshness *streams.Freshness
	presence  *presence.View
	logs      *hublog.Logs
	kicks     *identity.Kicker
	mailer    *mail.Mailer
	mails     *outbox.Outbox
	keyUse    *keyuse.Tracker
	signIn    *signin.Store
	portal    *portal.Portal
	caller    *rpc.Caller
	devices   *rpc.Devices
	keys      *idempotency.Keys
	commands  *commands.Commands
	bridge    *hubbridge.Bridge

	// The loops, by layer.
	foundation *crew // read models, indexes, barrier, callout
	bridging   *crew // ingest and presence
	guests     *crew // what runs on the service as its users do: the demo

	// draining is closed when the service begins to stop.
	draining chan struct{}
	servers  []*http.Server
}

// startService starts the service and returns once it is ready: every part is up, the read models
// have what was in the directory, and endpoints.json says where it listens. What it started it has
// put away again when it fails.
func startService(
	ctx context.Context, flags *serviceFlags, log *slog.Logger,
) (_ *service, err error) {
	began := time.Now()
	// What is read at a start mostly stays: collecting garbage in between finds little, and takes a
	// tenth of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(startGCPercent))
	untilStopped := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, flags.StartTimeout, errStartTimeout)
	defer cancel()
	failed := make(chan error, 1)
	s := &service{
		flags: flags, dir: dataDir(flags.DataDir), log: log, registry: prometheus.NewRegistry(),
		failed:     failed,
		foundation: newCrew(failed), bridging: newCrew(failed), guests: newCrew(failed),
		draining: make(chan struct{}),
	}
	if s.traces, err = otlp.Start(ctx, log); err != nil {
		return nil, usagef("%w", err)
	}
	if s.traces.Tracer().On() {
		s.log = slog.New(telemetry.LogHandler(log.Handler()))
	}
	s.health = newHealth(s)
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"ground", s.layGround},
		{"read models", s.startReadModels},
		{"hub link", s.startHubLink},
		{"http", s.startHTTP},
	} {
		stepBegan := time.Now()
		if err := step.run(ctx); err != nil {
			return nil, err
		}
		log.Debug("started", "part", step.name, "duration_ms", time.Since(stepBegan).Milliseconds())
	}
	if err := s.finishStart(untilStopped); err != nil {
		return nil, err
	}
	log.Info(
		"ready", "http", s.bound.HTTP, "mqtt", s.bound.MQTT, "nats", s.bound.NATS,
		"admin", s.bound.Admin, "public_url", s.bound.PublicURL,
		"duration_ms", time.Since(began).Milliseconds(),
	)
	if err := notifyManager("READY=1"); err != nil {
		log.Warn("the service manager does not hear that the service is ready", "error", err)
	}
	return s, nil
}

// stop puts everything away in order: not ready any more, no new requests, streams ended, commands
// under way finished, the demo gone, the bridge drained at a message's boundary, the read models at
// an event's, then the broker and the database. It takes at most ten seconds and what it cannot
// finish is as safe as after a kill -9.
func (s *service) stop() {
	began := time.Now()
	close(s.draining)
	s.stopHTTP()
	s.stopAsking()
	s.guests.stop()
	s.refuseHubs()
	s.bridging.stop()
	if s.kicks != nil {
		s.kicks.Close()
	}
	s.foundation.stop()
	if s.logs != nil {
		s.logs.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	s.leaveGround()
	s.stopTraces()
	s.log.Info("stopped", "duration_ms", time.Since(began).Milliseconds())
}

// stopTraces sends the last spans.
func (s *service) stopTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
	defer cancel()
	if err := s.traces.Stop(ctx); err != nil {
		s.log.Warn("the last traces have not got out", "error", err)
	}
}

// refuseHubs lets no more hubs in while there is still somebody to answer the broker's question
// about those that are coming.
func (s *service) refuseHubs() {
	if s.broker == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), refuseTimeout)
	defer cancel()
	s.broker.RefuseHubs(ctx)
}
