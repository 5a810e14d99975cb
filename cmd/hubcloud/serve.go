package main

import (
	"context"
	"log/slog"
)

// serveCommand runs the service.
type serveCommand struct {
	serviceFlags
}

// Run serves until SIGINT or SIGTERM.
func (c *serveCommand) Run(ctx context.Context, out Streams) error {
	return serve(ctx, &c.serviceFlags, c.logger(out), nil)
}

// serve runs the service until ctx ends, then puts everything away in order. Once the service is
// ready it calls ready, if there is one, in a loop of its own that ends before the service does.
func serve(
	ctx context.Context, flags *serviceFlags, log *slog.Logger,
	ready func(ctx context.Context, s *service) error,
) error {
	s, err := startWithRoom(ctx, flags, log)
	if err != nil && ctx.Err() != nil {
		log.Info("stopped before it was ready")
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		_ = notifyManager("STOPPING=1") // it stops all the same
		s.stop()
	}()
	if ready != nil {
		s.guests.run("demo", func(ctx context.Context) error { return ready(ctx, s) })
	}
	select {
	case <-ctx.Done():
		log.Info("stopping")
		return nil
	case err := <-s.failed:
		log.Error("a part of the service has failed", "error", err)
		return err
	}
}
