package cli

import (
	"context"
	"net/url"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/virtualhub"
)

// enrolTimeout bounds an enrolment of a virtual hub.
const enrolTimeout = 30 * time.Second

// virtualhubCommand groups the commands that simulate hubs.
type virtualhubCommand struct {
	Run   virtualhubRunCommand   `cmd:"" default:"withargs" help:"Run one hub."`
	Fleet virtualhubFleetCommand `cmd:"" help:"Run many hubs in one process, for load tests."`
}

// virtualhubRunCommand runs one virtual hub.
type virtualhubRunCommand struct {
	Enroll  string   `help:"Base URL of the cloud, without /link/v1." required:"" placeholder:"URL"`
	Serial  string   `help:"Serial of the hub." required:"" placeholder:"SERIAL"`
	Secret  string   `help:"Enrolment secret of the hub." required:"" placeholder:"SECRET"`
	Devices string   `help:"JSON file with the hub's devices. Defaults to one device of every kind." type:"path" placeholder:"FILE"`
	Dir     string   `help:"Folder that keeps the hub's certificate, events and devices. Without it, each run begins with a new hub log." type:"path" placeholder:"DIR"`
	Fault   []string `help:"Fault to simulate, such as radio_down, late_answers=3s or jammed=1,2; may be repeated." sep:"none" placeholder:"FAULT"`

	LogLevel string `help:"Lowest level to log: debug, info, warn, error." default:"info" enum:"debug,info,warn,error"`
}

// Run runs the hub until SIGINT or SIGTERM.
func (c *virtualhubRunCommand) Run(ctx context.Context, out Output) error {
	if err := checkEnroll(c.Enroll); err != nil {
		return err
	}
	if _, ok := domain.ParseSerial(c.Serial); !ok {
		return installation.Usagef(
			"--serial: %q must be a serial, such as HUB-7K2M-Q4XD-93TA", c.Serial,
		)
	}
	if !domain.ValidEnrolmentSecret(c.Secret) {
		return installation.Usagef(
			"--secret: must be 32 bytes in base64url without padding, 43 characters",
		)
	}
	cfg := virtualhub.Config{Config: hub.Config{
		EnrollURL: c.Enroll, Serial: c.Serial, Secret: c.Secret, Dir: c.Dir,
		HTTPClient: installation.HTTPClient(enrolTimeout),
		Logger:     textLogger(out, levelOf(c.LogLevel)),
	}}
	if c.Devices != "" {
		file, err := virtualhub.ReadDevicesFile(c.Devices)
		if err != nil {
			return installation.Usagef("--devices: %w", err)
		}
		cfg.Devices, cfg.Joinable, cfg.Faults = file.Devices, file.Joinable, file.Faults
	}
	for _, fault := range c.Fault {
		if err := cfg.Faults.Set(fault); err != nil {
			return installation.Usagef("--fault: %w", err)
		}
	}
	hub, err := virtualhub.New(cfg)
	if err != nil {
		if os.IsPermission(err) {
			return err
		}
		return installation.AsUsage(err)
	}
	defer func() {
		if err := hub.Close(); err != nil {
			cfg.Logger.Warn("virtual hub not closed", "hub_id", hub.ID(), "error", err)
		}
	}()
	group, groupCtx := errgroup.WithContext(ctx)
	controlCtx, stopControl := context.WithCancel(groupCtx)
	group.Go(func() error {
		defer stopControl()
		return hub.Run(groupCtx)
	})
	group.Go(func() error {
		hubs := []virtualhub.Served{{Hub: hub}}
		if err := virtualhub.Serve(controlCtx, hubs, c.Dir); err != nil {
			cfg.Logger.Warn("virtual hub not controllable", "hub_id", hub.ID(), "error", err)
		}
		return nil
	})
	return ended(ctx, group.Wait())
}

// checkEnroll validates --enroll.
func checkEnroll(address string) error {
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "" {
		return installation.Usagef("--enroll %q: must be http://… or https://…", address)
	}
	return nil
}
