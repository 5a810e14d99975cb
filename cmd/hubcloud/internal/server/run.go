package server

import (
	"context"
	"log/slog"
)

// Run runs a replica until ctx ends or one of its parts fails, and then stops it in order. When ctx
// ends, Run returns nil, also during the start. Run waits while the disk is full.
//
// When the server is ready, Run calls ready in a goroutine of its own, unless it is nil. ready must
// run until its context ends, which is before the server stops. If it returns earlier, Run stops
// the server and returns an error.
func Run(
	ctx context.Context, cfg Config, logger *slog.Logger,
	ready func(ctx context.Context, s *Server) error,
) error {
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
	if ready != nil {
		s.clients.run("demo", func(ctx context.Context) error { return ready(ctx, s) })
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
