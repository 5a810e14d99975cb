package cli

import (
	"context"
	_ "embed" // for the template
	"os"
	"text/template"

	"hubcloud/cmd/hubcloud/internal/server"
	"hubcloud/domain"
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
	var hubs []domain.HubID
	for _, hub := range demoHubs {
		hubs = append(hubs, hub.id)
	}
	// A terminal that is gone is no failure of the service.
	_ = devText.Execute(out.Out, map[string]any{
		"API": api, "Key": state.Key, "Hubs": hubs, "Admin": d.Endpoints().Admin, "Dir": d.dir,
		"Link": link, "Program": os.Args[0], "Curl": curl,
	})
}

//go:embed dev.txt.tmpl
var devTemplate string

var devText = template.Must(template.New("dev").Option("missingkey=error").Parse(devTemplate))
