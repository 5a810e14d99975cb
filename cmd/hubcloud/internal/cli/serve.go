package cli

import (
	"context"

	"hubcloud/cmd/hubcloud/internal/server"
)

// serveCommand runs the service. Its flags are the fields of server.Config and logFlags.
type serveCommand struct {
	server.Config
	logFlags
}

// Run serves until SIGINT or SIGTERM.
func (c *serveCommand) Run(ctx context.Context, out Output) error {
	return server.Run(ctx, c.Config, c.logger(out), nil)
}
