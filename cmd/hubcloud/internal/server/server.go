package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/directory"
	"hubcloud/streams/signin"
)

const (
	// startGCPercent is GOGC during a start. Most of what a start allocates stays in memory, so
	// that collections find little; at the normal rate they took a tenth of the start.
	startGCPercent = 400

	// shortRetention is the least --event-retention without a warning. The contract has 24 hours.
	shortRetention = time.Hour
)

// Server is one running replica. Its parts form layers, each of which has the layer below: a
// process, its infrastructure, the read models, the link to the hubs, and HTTP. A part can use only
// parts of its own layer and of lower ones. Parts that the replica's roles do not need are nil.
type Server struct{ *web }

// Directory returns the service that changes organizations, hubs, keys and members.
func (s *Server) Directory() *directory.Service { return s.directory }

// Presence returns the connection status of all hubs.
func (s *Server) Presence() *presence.View { return s.presence }

// SignIn returns the store of the portal's links and sessions.
func (s *Server) SignIn() *signin.Store { return s.signIn }

// Endpoints returns the addresses at which the server listens.
func (s *Server) Endpoints() installation.Endpoints { return s.bound }

// Start starts a replica and returns once it is ready. The caller must then call Stop. If Start
// fails, it has already stopped the parts that it had started.
func Start(ctx context.Context, cfg Config, logger *slog.Logger) (_ *Server, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, installation.AsUsage(err)
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
	p, err := newProcess(starting, cfg, logger)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	// late returns err with the flag to raise, if the start's time is over.
	late := func(err error) error {
		if time.Since(began) < cfg.StartTimeout || errors.Is(err, errStartTimeout) {
			return err
		}
		return fmt.Errorf("%w: %s (--start-timeout) were too short: %w", errStartTimeout,
			cfg.StartTimeout, err)
	}
	infrastructure, err := p.startInfrastructure(starting)
	if err != nil {
		return nil, late(err)
	}
	logger.Debug("infrastructure started", "after_ms", time.Since(began).Milliseconds())
	models, err := infrastructure.startReadModels(starting)
	if err != nil {
		return nil, late(err)
	}
	logger.Debug("read models started", "after_ms", time.Since(began).Milliseconds())
	link, err := models.startHubLink(starting)
	if err != nil {
		return nil, late(err)
	}
	logger.Debug("hub link started", "after_ms", time.Since(began).Milliseconds())
	web, err := link.startHTTP(starting)
	if err != nil {
		return nil, late(err)
	}
	// A full disk may delay the end of the start beyond the start timeout.
	if err := p.finishStart(ctx); err != nil {
		return nil, err
	}
	p.run(stopLoops, "memory limit", p.limitMemory)
	logger.Info(
		"ready", "http", p.bound.HTTP, "mqtt", p.bound.MQTT, "nats", p.bound.NATS,
		"admin", p.bound.Admin, "public_url", p.bound.PublicURL,
		"duration_ms", time.Since(began).Milliseconds(),
	)
	if err := notifyServiceManager("READY=1"); err != nil {
		logger.Warn("service manager not notified", "state", "READY=1", "error", err)
	}
	return &Server{web}, nil
}

// Stop stops the server, in the order of the steps. It takes at most ten seconds, and must be
// called once.
func (s *Server) Stop() { s.stop() }
