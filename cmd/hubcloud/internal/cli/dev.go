package cli

import (
	"context"
	"fmt"
	"os"

	"hubcloud/cmd/hubcloud/internal/server"
)

// devCommand runs the service with a demo.
type devCommand struct {
	server.Config
	logFlags
}

// Run serves until SIGINT or SIGTERM, and prints how to try the demo once its hubs are online.
func (c *devCommand) Run(ctx context.Context, out Output) error {
	c.FetchPostgres = true
	logger := c.logger(out)
	return server.Run(
		ctx, c.Config, logger, func(ctx context.Context, s *server.Server) error {
			d := demo{s, c.Dir(), c.TLSCert, logger}
			return d.run(ctx, func(state demoState, link string) { d.print(out, state, link) })
		},
	)
}

// print prints commands that work when pasted into a shell.
func (d demo) print(out Output, state demoState, link string) {
	api, curl := d.Endpoints().PublicURL+"/v1", "curl"
	if d.tlsCert != "" { // it may be signed by nobody whom curl knows
		curl = "curl --cacert " + d.tlsCert
	}
	fmt.Fprintf(out.Out, `
hubcloud is running, with three virtual hubs that send events.

  API        %[1]s
  reference  %[1]s/reference   (describes every call; try them there with the key)
  key        %[2]s   (has every scope)
  hubs       %[3]s, %[4]s, %[5]s
  metrics    http://%[6]s/metrics

Open the web portal, signed in as the demo's owner (the link works once; each start prints a new one):

  %[8]s

Follow a hub's events:

  %[10]s -N -H 'Authorization: Bearer %[2]s' %[1]s/hubs/%[3]s/events/stream

List the hubs, and read the oldest events of one, page by page:

  %[10]s -s -H 'Authorization: Bearer %[2]s' %[1]s/hubs
  %[10]s -s -H 'Authorization: Bearer %[2]s' '%[1]s/hubs/%[3]s/events?limit=5'

List the hub's devices, and unlock its front door while you follow its events:

  %[10]s -s -H 'Authorization: Bearer %[2]s' %[1]s/hubs/%[3]s/devices
  %[10]s -s -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' -H 'Idempotency-Key: first' \
    -d '{"key":"lock","value":false}' %[1]s/hubs/%[3]s/devices/1/commands

Make something happen at a hub: trigger its smoke alarm, jam its lock, take it offline (sim --help lists everything):

  %[9]s sim smoke %[3]s
  %[9]s sim jam %[3]s
  %[9]s sim offline %[3]s

Wait for the next event after a cursor (the next_cursor of a page):

  %[10]s -s -H 'Authorization: Bearer %[2]s' '%[1]s/hubs/%[3]s/events?wait=30&after=CURSOR'

Press Ctrl-C to stop. Everything is kept in %[7]s.

`, api, state.Key, demoHubs[0].id, demoHubs[1].id, demoHubs[2].id, d.Endpoints().Admin, d.dir,
		link, os.Args[0], curl)
}
