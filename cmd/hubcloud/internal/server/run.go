package server

import (
	"context"
	"log/slog"
)

// Run runs a replica until ctx ends or one of its parts fails, and then stops it in order. When ctx
// ends, Run returns nil, also during the start. Run waits while the disk is full.
//
// When Run returns, service.json has the reason.
//
// Once the server is ready, Run runs the demo, unless it is nil, until its context ends, which is
// before the server stops. A demo that returns earlier counts as a part that fails.
func Run(
	ctx context.Context, cfg Config, logger *slog.Logger,
	demo func(ctx context.Context, s *Server) error,
) (err error) {
	defer func() { recordEnd(cfg, err, logger) }()
	s, err := startWhenSpace(ctx, cfg, logger)
	if err != nil && ctx.Err() != nil {
		logger.Info("stopped during the start")
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = notifyServiceManager("STOPPING=1") // the stop does not depend on the service manager
		s.Stop()
	}()
	if demo != nil {
		s.run(stopDemo, "demo", func(ctx context.Context) error { return demo(ctx, s) })
	}
	select {
	case <-ctx.Done():
		logger.Info("stopping")
		return nil
	case err := <-s.failed:
		logger.Error("part failed", "error", err)
		return err
	}
}
