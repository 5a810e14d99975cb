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

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/httpapi/webhook"
)

// Output is what a command writes to: Out gets its results, Err everything else.
type Output struct {
	Out, Err io.Writer
}

// The exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitGone is the exit code of `forward` when the receiver wants no more events.
	exitGone = 3
)

// cli has one field for each command. Every flag is also an environment variable: HUBCLOUD_ and the
// flag's name.
type cli struct {
	//lint:ignore SA5008 kong takes the tag `set` more than once
	Serve serveCommand `cmd:"" set:"environment=live" set:"loglevel=info" set:"webhookprivate=false" help:"Run the service."`
	//lint:ignore SA5008 kong takes the tag `set` more than once
	Dev        devCommand        `cmd:"" set:"environment=dev" set:"loglevel=warn" set:"webhookprivate=true" help:"Run the service with a demo organization, an API key and three virtual hubs."`
	Org        orgCommand        `cmd:"" help:"Organizations."`
	Key        keyCommand        `cmd:"" aliases:"keys" help:"API keys."`
	Inventory  inventoryCommand  `cmd:"" help:"Hubs that may enrol."`
	Virtualhub virtualhubCommand `cmd:"" help:"Simulate hubs, for trials and load tests."`
	Hub        hubCommand        `cmd:"" help:"Tools for people who make hubs."`
	Sim        simCommand        `cmd:"" help:"Make running virtual hubs misbehave, to see each event of the API happen."`
	Doctor     doctorCommand     `cmd:"" help:"Check every component and print what is wrong and what to do."`

	Projections projectionsCommand `cmd:"" help:"Read models: show their status, stop, resume, rebuild and verify them."`

	Backup  backupCommand  `cmd:"" help:"Back up a running installation into a folder."`
	Restore restoreCommand `cmd:"" help:"Restore a backup into an empty data directory or an empty broker."`

	Ready        readyCommand        `cmd:"" help:"Check whether the service on this machine is ready, for example as a container's health check."`
	BrokerConfig brokerConfigCommand `cmd:"" help:"Write the configuration of nats-server for an external broker."`
	BrokerRepair brokerRepairCommand `cmd:"" help:"Repair the store of an external nats-server after a crash, while it is stopped."`
	Tap          tapCommand          `cmd:"" help:"Read the events of all hubs, for analytics."`
	Version      versionCommand      `cmd:"" help:"Print the version, the commit, the build date, the Go toolchain and the hash of the read models' definition."`

	Sites     sitesCommand     `cmd:"" help:"List the organization's sites." group:"With an API key:"`
	Members   membersCommand   `cmd:"" help:"List the organization's members." group:"With an API key:"`
	Attention attentionCommand `cmd:"" help:"List what needs attention: alarms, jammed locks, what is offline, low batteries." group:"With an API key:"`
	State     stateCommand     `cmd:"" help:"List what channels last reported: which doors are unlocked?" group:"With an API key:"`
	Hubs      hubsCommand      `cmd:"" help:"List the organization's hubs." group:"With an API key:"`
	Devices   devicesCommand   `cmd:"" help:"List a hub's devices, or show the channels of one." group:"With an API key:"`
	Events    eventsCommand    `cmd:"" help:"Print or follow the events of a hub, or of all hubs." group:"With an API key:"`
	Forward   forwardCommand   `cmd:"" help:"Post the events of all hubs to a service of yours." group:"With an API key:"`
	MCP       mcpCommand       `cmd:"" name:"mcp" help:"Offer the API to language models as tools, by the Model Context Protocol." group:"With an API key:"`
	Readers   readersCommand   `cmd:"" help:"List the readers of events that name themselves, and how far they are behind." group:"With an API key:"`
	Send      sendCommand      `cmd:"" help:"Send a command to a device, and wait for its outcome." group:"With an API key:"`
	Audit     auditCommand     `cmd:"" help:"Print or follow who changed what in the organization." group:"With an API key:"`
	Codes     codesCommand     `cmd:"" help:"Manage the door codes of locks." group:"With an API key:"`
	Webhooks  webhooksCommand  `cmd:"" help:"Have the service post events to addresses of yours." group:"With an API key:"`

	Login    loginCommand    `cmd:"" help:"Store an API's address and key in a profile." group:"With an API key:"`
	Logout   logoutCommand   `cmd:"" help:"Remove a profile." group:"With an API key:"`
	Profiles profilesCommand `cmd:"" help:"List the profiles, without their keys." group:"With an API key:"`

	Completion completionCommand `cmd:"" help:"Print a script that makes a shell complete this command line."`
	Complete   completeCommand   `cmd:"" hidden:""`

	ShowVersion kong.VersionFlag `help:"Print the version." name:"version" env:"-"`
}

// Run runs one command line and returns its exit code: 0 for success, 1 when the command failed, 2
// for a usage error, 3 when the receiver of `forward` answered 410. SIGINT and SIGTERM stop the
// command in order; a second signal ends the process at once.
func Run(ctx context.Context, args []string, out Output) (code int) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	out.Out = textWriter{out.Out}

	exited := false
	parser, err := kong.New(&cli{},
		kong.Name("hubcloud"),
		kong.Description(helpText("hubcloud")),
		kong.DefaultEnvars("HUBCLOUD"),
		kong.Vars{"version": "hubcloud " + installation.Program().Version},
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
	addHelp(parser.Model.Node, "")
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited { // --help or --version was printed
		return code
	}
	// A misspelt variable may be the reason for any other error.
	if wrong := checkEnvironment(parser.Model, args[0], os.Environ()); wrong != nil {
		err = wrong
	}
	if err == nil {
		err = checkGiven(command)
	}
	if logsJSON(args, os.Getenv) {
		out = Output{Out: out.Out, Err: jsonErrors{out.Err}}
	}
	if err != nil {
		fmt.Fprintf(out.Err, "hubcloud: %v (%s)\n", err, adviceOn(args, commandOf(command, err)))
		return exitUsage
	}
	return exitCode(command.Run(parser), out)
}

// exitCode prints an error in one line and returns its exit code: 2 when the command line was
// wrong, 3 for webhook.ErrGone, otherwise 1.
func exitCode(err error, out Output) int {
	if err == nil {
		return exitOK
	}
	code, text := exitFailed, err.Error()
	var usageErr installation.UsageError
	var domainErr *domain.Error
	switch {
	case errors.Is(err, errUnhealthy): // what is wrong was printed
		return exitFailed
	case errors.As(err, &usageErr):
		code, text = exitUsage, usageErr.Error()
	case errors.As(err, &domainErr):
		text = domainErr.Message
		if domainErr.Code == domain.CodeInvalidRequest || domainErr.Code == domain.CodeNotFound {
			code = exitUsage
		}
	case errors.Is(err, webhook.ErrGone):
		code = exitGone
	}
	fmt.Fprintln(out.Err, "hubcloud:", text)
	return code
}

// ended returns nil for a loop that ctx has stopped, and the loop's error otherwise.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
