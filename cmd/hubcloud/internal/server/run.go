package server

import (
	"context"
	"log/slog"
)

// Client is a loop that uses the server in the same process, such as the demo.
type Client struct {
	// Name names the loop in errors.
	Name string
	// Run runs until its context ends, which is before the server stops.
	Run func(ctx context.Context, s *Server) error
}

// Run runs a replica until ctx ends or one of its parts fails, and then stops it in order. When ctx
// ends, Run returns nil, also during the start. Run waits while the disk is full.
//
// When Run returns, service.json has the reason.
//
// Once the server is ready, Run runs the client, unless it is nil, in a goroutine. A client that
// returns before its context ends counts as a part that fails.
func Run(
	ctx context.Context, cfg Config, logger *slog.Logger, client *Client,
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
	if client != nil {
		s.run(stopClient, client.Name, func(ctx context.Context) error { return client.Run(ctx, s) })
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
