package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/httpapi/client"
	"hubcloud/httpapi/mcpserver"
)

// mcpCommand serves the Model Context Protocol.
type mcpCommand struct {
	apiFlags
	HTTP          string `help:"Serve streamable HTTP on this address, such as 127.0.0.1:8765, instead of standard input and output. Without a host, only this machine can connect." name:"http" placeholder:"ADDRESS" env:"HUBCLOUD_MCP_HTTP"`
	AllowCommands bool   `help:"Also offer the tool that sends commands to devices."`
}

// Run serves until the client ends the session, or until an interrupt.
func (c *mcpCommand) Run(ctx context.Context, out Output) error {
	if c.HTTP != "" {
		return c.serveHTTP(ctx, out)
	}
	return c.withClient(ctx, func(api *client.Client) error {
		server := mcpserver.New(mcpserver.Config{
			Version: installation.Program().Version, Commands: c.AllowCommands,
			Client: func(string) (*client.Client, error) { return api, nil },
		})
		return ended(ctx, server.Run(ctx, &mcp.StdioTransport{}))
	})
}

// serveHTTP serves callers that have keys of their own. One pool of connections to the API serves
// all.
func (c *mcpCommand) serveHTTP(ctx context.Context, out Output) error {
	base, _, err := c.baseAndKey()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(c.HTTP)
	if err != nil {
		return installation.Usagef("--http %q: must be HOST:PORT or :PORT", c.HTTP)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	pool := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	server := mcpserver.New(mcpserver.Config{
		Version: installation.Program().Version, Commands: c.AllowCommands,
		Client: func(key string) (*client.Client, error) {
			return c.open(base, key, pool, slog.New(slog.DiscardHandler))
		},
	})
	serving := &http.Server{
		Handler: mcpserver.Handler(server), ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}
	stop := context.AfterFunc(ctx, func() { serving.Close() })
	defer stop()
	fmt.Fprintf(out.Err, "serving the tools at http://%s/ for callers with API keys of %s\n", listener.Addr(), base)
	if err := serving.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
