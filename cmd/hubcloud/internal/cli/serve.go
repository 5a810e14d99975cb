package cli

import (
	"context"
	"log/slog"

	"hubcloud/cmd/hubcloud/internal/server"
)

// serveCommand runs the service.
type serveCommand struct {
	server.Config
	logFlags
}

// Run serves until SIGINT or SIGTERM.
func (c *serveCommand) Run(ctx context.Context, out Streams) error {
	return server.Run(ctx, c.Config, c.logger(out), nil)
}

// logFlags configure the log of the service.
type logFlags struct {
	LogLevel  string `help:"Lowest level to log: debug, info, warn, error." default:"${loglevel}" enum:"debug,info,warn,error" group:"Log"`
	LogFormat string `help:"Format of the log: text or json." default:"text" enum:"text,json" group:"Log"`
}

// logger returns a logger that writes to the error stream.
func (f logFlags) logger(out Streams) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out.Err, options))
	}
	return slog.New(slog.NewTextHandler(out.Err, options))
}
