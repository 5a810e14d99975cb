package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

// step is a step of the stop. The steps follow one another; what belongs to one step stops at once.
type step int

// The steps, in their order. When the first one begins, /readyz answers 503, and event streams and
// long-polls end.
const (
	stopRequests     step = iota // the HTTP servers finish requests under way
	stopCommands                 // commands whose clients have gone finish
	stopQuestions                // hubs are not asked for their devices any more
	stopCalls                    // answers of hubs are not received any more
	stopDemo                     // the demo of Run
	stopHubs                     // the embedded broker rejects new connections of hubs
	stopBridge                   // the bridge, between two messages of a hub
	stopDisconnector             // what cuts connections of hubs
	stopLoops                    // the read models, between two events, and all other loops
	closeFeeds                   // the feeds of organizations
	closeLogs                    // the hub logs
	closeConnections             // those to the database and the broker
	closeServers                 // the embedded broker and the private database
	closeDirectory               // the data directory is released
	closeTraces                  // the last traces are sent
	stopSteps
)

// The time limits of steps. Together, with a second for aborted commands, they are at most ten
// seconds, the grace period of common service managers. Loops return promptly when their context
// ends.
const (
	drainTimeout      = 3 * time.Second
	commandTimeout    = time.Second
	rejectHubsTimeout = time.Second
	brokerTimeout     = 3 * time.Second
	postgresTimeout   = 3 * time.Second
	tracesTimeout     = time.Second
)

// process is what all layers of a replica stand on: its configuration, its log and metrics, the
// loops that run, and what the stop has to do.
type process struct {
	cfg      Config
	dir      installation.Dir
	logger   *slog.Logger
	registry *prometheus.Registry
	// shares has every limit of what organizations share.
	shares *shares.Registry
	traces traceSender
	health *health
	// bound has the addresses at which the replica listens already.
	bound installation.Endpoints
	// certificate has the certificate of the public port; nil without HTTPS.
	certificate certificateSource
	// failed has the first failure of a loop.
	failed chan error
	// draining is closed when the stop begins.
	draining chan struct{}
	// loops are stopped in their step, before stops are called.
	loops [stopSteps]*group

	mu    sync.Mutex
	stops [stopSteps][]func()
	// postponed are files that could not be written because the disk was full.
	postponed []func() error
}

func newProcess(ctx context.Context, cfg Config, logger *slog.Logger) (p *process, err error) {
	p = &process{
		cfg: cfg, dir: installation.Dir(cfg.DataDir), logger: logger,
		registry: prometheus.NewRegistry(), failed: make(chan error, 1),
		draining: make(chan struct{}), shares: new(shares.Registry),
	}
	p.registry.MustRegister(p.shares)
	for i := range p.loops {
		p.loops[i] = newGroup(p.failed)
	}
	if p.certificate, err = p.openCertificate(); err != nil {
		return nil, installation.AsUsage(err)
	}
	if p.traces, err = startTraces(ctx, installation.Program().Version, logger); err != nil {
		return nil, installation.AsUsage(err)
	}
	if p.traces.Tracer().On() {
		p.logger = slog.New(telemetry.LogHandler(logger.Handler()))
	}
	p.atStop(closeTraces, p.stopTraces)
	p.health = newHealth(p.logger)
	return p, nil
}

// run starts a loop, which is stopped in a step of the stop.
func (p *process) run(s step, name string, loop func(ctx context.Context) error) {
	p.loops[s].run(name, loop)
}

// atStop has stop called in a step of the stop.
func (p *process) atStop(s step, stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops[s] = append(p.stops[s], stop)
}

// stop stops all parts of the replica, step by step. It must be called once.
func (p *process) stop() {
	began := time.Now()
	close(p.draining)
	for s := range stopSteps {
		p.loops[s].stop()
		var parts sync.WaitGroup
		for _, stop := range p.stops[s] {
			parts.Go(stop)
		}
		parts.Wait()
	}
	p.logger.Info("stopped", "duration_ms", time.Since(began).Milliseconds())
}

// stopTraces sends the spans that are still in memory.
func (p *process) stopTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), tracesTimeout)
	defer cancel()
	if err := p.traces.Stop(ctx); err != nil {
		p.logger.Warn("last traces not sent", "error", err)
	}
}
