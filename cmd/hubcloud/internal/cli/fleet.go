package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/hubbridge/kit/virtualhub"
)

// virtualhubFleetCommand runs many virtual hubs in one process.
type virtualhubFleetCommand struct {
	Enroll    string        `help:"Base URL of the cloud, without /link/v1." required:"" placeholder:"URL"`
	Inventory string        `help:"File with the output of \"hubcloud inventory generate --json\"; - for standard input." required:"" placeholder:"FILE"`
	Count     int           `help:"Number of hubs to run; 0 for all." default:"0"`
	Rate      float64       `help:"Events per second of each hub; 0 for as many as the cloud acknowledges." default:"1"`
	Batch     int           `help:"Events per message, 1 to 500." default:"1"`
	For       time.Duration `help:"How long to run; 0 until interrupted." default:"0s"`
	Every     time.Duration `help:"Interval of progress lines." default:"5s"`
}

// Run runs the fleet and prints its progress.
func (c *virtualhubFleetCommand) Run(ctx context.Context, out Output) error {
	if err := checkEnroll(c.Enroll); err != nil {
		return err
	}
	hubs, err := c.hubs()
	if err != nil {
		return installation.AsUsage(err)
	}
	hubFleet, err := virtualhub.NewFleet(virtualhub.FleetConfig{
		EnrollURL: c.Enroll, Hubs: hubs, Rate: c.Rate, Batch: c.Batch,
		HTTPClient: installation.HTTPClient(enrolTimeout),
		Logger:     slog.New(slog.DiscardHandler), // the lines of report say enough
	})
	if err != nil {
		return installation.AsUsage(err)
	}
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return hubFleet.Run(ctx) })
	group.Go(func() error {
		c.report(ctx, hubFleet, out)
		return nil
	})
	return ended(ctx, group.Wait())
}

// hubs reads the inventory, one JSON object per line.
func (c *virtualhubFleetCommand) hubs() ([]virtualhub.Credentials, error) {
	var from io.Reader = os.Stdin
	if c.Inventory != "-" {
		file, err := os.Open(c.Inventory)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	var hubs []virtualhub.Credentials
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan() && (c.Count == 0 || len(hubs) < c.Count); n++ {
		var hub virtualhub.Credentials
		if err := json.Unmarshal(lines.Bytes(), &hub); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", c.Inventory, n, err)
		}
		hubs = append(hubs, hub)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(hubs) == 0 || len(hubs) < c.Count {
		return nil, fmt.Errorf(
			"%s has %d hubs; create more with `hubcloud inventory generate --json`", c.Inventory,
			len(hubs),
		)
	}
	return hubs, nil
}

// report prints a line of progress per interval, and one at the end.
func (c *virtualhubFleetCommand) report(ctx context.Context, hubs *virtualhub.Fleet, out Output) {
	ticker := time.NewTicker(max(c.Every, 100*time.Millisecond))
	defer ticker.Stop()
	began, before := time.Now(), virtualhub.FleetStats{}
	last := began
	for {
		select {
		case <-ctx.Done():
			now := hubs.Stats()
			fmt.Fprintf(
				out.Out, "ended: %d events acknowledged of %d in %s, ack p50 %s, p99 %s\n",
				now.Acked, now.Emitted, time.Since(began).Round(time.Second), now.AckP50,
				now.AckP99,
			)
			return
		case <-ticker.C:
			now := hubs.Stats()
			rate := float64(now.Acked-before.Acked) / time.Since(last).Seconds()
			fmt.Fprintf(
				out.Out,
				"%d of %d hubs connected, %.0f events/s acknowledged, ack p50 %s, p99 %s, %d "+
					"resent, %d connections lost\n",
				now.Connected,
				now.Hubs,
				rate,
				now.AckP50,
				now.AckP99,
				now.Resent,
				now.Disconnections,
			)
			before, last = now, time.Now()
		}
	}
}
