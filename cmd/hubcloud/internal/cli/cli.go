package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/domain"
)

// Streams are where a command prints: results on Out, everything else on Err.
type Streams struct {
	Out, Err io.Writer
}

// The exit codes of the binary.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// cli is the grammar of the command line. Every flag is also an environment variable, HUBCLOUD_ and
// its name.
type cli struct {
	//lint:ignore SA5008 kong takes the tag `set` more than once
	Serve serveCommand `cmd:"" set:"environment=live" set:"loglevel=info" help:"Run the service: broker, database, bridge, projector, API."`
	//lint:ignore SA5008 kong takes the tag `set` more than once
	Dev        devCommand        `cmd:"" set:"environment=dev" set:"loglevel=warn" help:"Run the service with a demo organization, an API key and three virtual hubs."`
	Org        orgCommand        `cmd:"" help:"Organizations."`
	Key        keyCommand        `cmd:"" help:"API keys."`
	Inventory  inventoryCommand  `cmd:"" help:"The hubs that may enrol."`
	Virtualhub virtualhubCommand `cmd:"" help:"Run hubs in software, for trials and load."`
	Doctor     doctorCommand     `cmd:"" help:"Look at every component, and say what is wrong and what to do."`

	Projections projectionsCommand `cmd:"" help:"The read models: how they are, stop and resume them, get past an event, build them anew, compare them."`

	Backup  backupCommand  `cmd:"" help:"Take everything that the installation needs to go on into a folder, while it serves."`
	Restore restoreCommand `cmd:"" help:"Bring a backup back, into an empty data directory or an empty broker."`

	Ready        readyCommand        `cmd:"" help:"Ask the service on this machine whether it is ready: a container's health check."`
	BrokerConfig brokerConfigCommand `cmd:"" help:"Write the configuration of nats-server for a broker of one's own."`
	BrokerRepair brokerRepairCommand `cmd:"" help:"Mend what a crash left in the store of a nats-server of one's own, while it is stopped."`
	Tap          tapCommand          `cmd:"" help:"Events of all hubs, for analytics."`

	Hubs    hubsCommand    `cmd:"" help:"List the organization's hubs, through the API." group:"With an API key:"`
	Devices devicesCommand `cmd:"" help:"Ask a hub for its devices, or for what one of them reads." group:"With an API key:"`
	Events  eventsCommand  `cmd:"" help:"Print a hub's events, and follow them." group:"With an API key:"`
	Send    sendCommand    `cmd:"" help:"Send a command to a device, and wait for what comes of it." group:"With an API key:"`
}

const description = `The device-hub cloud: hubs connect to it over MQTT, API consumers list their devices and follow their event logs.

Start with "hubcloud dev": it sets up everything in ./data, connects three virtual hubs and prints commands to paste.

Every flag can also be given as an environment variable, named in its line below.`

// Run runs one command line and gives its exit code: 0, 1 when the command failed, 2 when what was
// typed makes no sense. It ends when the command does, or at SIGINT and SIGTERM once everything is
// put away; a second signal ends the process at once.
func Run(ctx context.Context, args []string, out Streams) (code int) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	exited := false
	parser, err := kong.New(&cli{},
		kong.Name("hubcloud"),
		kong.Description(description),
		kong.DefaultEnvars("HUBCLOUD"),
		kong.Writers(out.Out, out.Err),
		kong.Exit(func(c int) { exited, code = true, c }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 140}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(out),
	)
	if err != nil {
		fmt.Fprintln(out.Err, "hubcloud:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited { // --help has been answered
		return code
	}
	if err != nil {
		fmt.Fprintf(out.Err, "hubcloud: %v (see `hubcloud --help`)\n", err)
		return exitUsage
	}
	return exitCode(command.Run(), out)
}

// exitCode prints what went wrong, in one line, and gives the code that says whose mistake it was.
func exitCode(err error, out Streams) int {
	if err == nil {
		return exitOK
	}
	var usage usage.Error
	var refusal *domain.Error
	switch {
	case errors.Is(err, errUnwell):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintln(out.Err, "hubcloud:", usage)
		return exitUsage
	case errors.As(err, &refusal) && (refusal.Code == domain.CodeInvalidRequest || refusal.Code == domain.CodeNotFound):
		fmt.Fprintln(out.Err, "hubcloud:", refusal.Message)
		return exitUsage
	case errors.As(err, &refusal):
		fmt.Fprintln(out.Err, "hubcloud:", refusal.Message)
		return exitFailed
	default:
		fmt.Fprintln(out.Err, "hubcloud:", err)
		return exitFailed
	}
}
