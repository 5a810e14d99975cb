package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/streams"
	"hubcloud/streams/backup"
)

// restoreCommand brings a backup back.
type restoreCommand struct {
	outputFlags
	Dir             string `arg:"" help:"Folder with the backup." type:"path"`
	Check           bool   `help:"Only look whether the backup is whole, and say what it is of."`
	DataDir         string `help:"Data directory to restore into: new, or empty." default:"./data" type:"path"`
	NATSURL         string `help:"Broker of one's own to restore into, instead of a data directory: empty." name:"nats-url" placeholder:"URL"`
	NATSCredentials string `help:"Credentials file for --nats-url." name:"nats-credentials" type:"path" placeholder:"FILE"`
	LogReplicas     int    `help:"Copies of each stream in a cluster, as serve will have it: 1 or 3." default:"1"`
}

// Help says what a restore means.
func (*restoreCommand) Help() string {
	return `Reads the whole backup and compares its sums before it touches anything; then restores it into an empty data directory, or into an empty broker.
No service may run there. Start one afterwards, with the flags that the former had.

The installation is then as it was AT THE MOMENT OF THE BACKUP. Whatever was done since is undone: what was added is missing, and what was
taken away is back. API keys, members and hub certificates that were revoked since the backup ARE IN FORCE AGAIN; revoke them again.

Events: without hub logs in the backup, the last 24 hours' are gone. Readers' cursors answer 410, and they resync as the contract says; hubs go on
with their certificates and their numbering, and what they sent since the backup and no longer hold is told as hub.events_skipped. With hub
logs, cursors of what is in the backup go on. People sign in to the portal again. With --postgres-url, give the service an empty database.

A restore that was interrupted is begun again by the same command; until it is finished no service starts there.

  hubcloud restore --data-dir /var/lib/hubcloud /backups/monday
  hubcloud restore --check /backups/monday`
}

// Validate checks what the flags say together; kong calls it once they are parsed.
func (c *restoreCommand) Validate() error {
	if c.LogReplicas != 1 && c.LogReplicas != 3 {
		return fmt.Errorf("--log-replicas %d: 1 or 3", c.LogReplicas)
	}
	if c.NATSURL != "" && c.NATSCredentials == "" && !c.Check {
		return errors.New("--nats-url needs --nats-credentials")
	}
	return nil
}

// Run checks the backup, and restores it.
func (c *restoreCommand) Run(ctx context.Context, out Streams) error {
	bar := newTransfer(out.Err, "check", c.JSON)
	defer bar.end()
	m, err := backup.Check(ctx, c.Dir, bar.tell)
	bar.end()
	if err != nil && c.Check {
		return err
	}
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	if c.Check {
		if c.JSON {
			return printObject(out.Out, takenOf(c.Dir, m))
		}
		fmt.Fprintf(
			out.Out, "%s is whole: %d files, %s. It holds the installation %s as it was at %s.\n",
			c.Dir, len(m.Files), byteText(m.Bytes()), m.Installation, m.At.Format(time.RFC3339),
		)
		return nil
	}
	into, err := c.restore(ctx, m, out)
	if err != nil {
		return err
	}
	if c.JSON {
		done := takenOf(c.Dir, m)
		return printObject(out.Out, struct {
			taken
			Into string `json:"restored_into"`
		}{done, into})
	}
	c.say(m, into, out)
	return nil
}

// say tells what has come back, what has not, and what to do.
func (c *restoreCommand) say(m backup.Manifest, into string, out Streams) {
	at := m.At.Format(time.RFC3339)
	fmt.Fprintf(
		out.Out, "%s is the installation as it was at %s, %s ago.\n\n", into, at,
		time.Since(m.At).Round(time.Second),
	)
	fmt.Fprintf(out.Out, "Everything that was done after %s is undone:\n", at)
	fmt.Fprintln(
		out.Out,
		"  - organizations, sites, hubs, members, invitations and API keys that were added since are missing;",
	)
	fmt.Fprintln(
		out.Out,
		"  - API keys, members, invitations and hub certificates that were REVOKED OR REMOVED "+
			"SINCE ARE IN FORCE AGAIN: revoke them again;",
	)
	fmt.Fprintln(
		out.Out,
		"  - commands since then are forgotten: one that is repeated with its Idempotency-Key is run again.",
	)
	if m.HubLogs {
		fmt.Fprintln(out.Out, "Events up to then are there; cursors of later ones answer 410.")
	} else {
		fmt.Fprintln(out.Out, "The last 24 hours' events are gone; cursors answer 410, and readers resync.")
	}
	fmt.Fprintln(
		out.Out,
		"What hubs sent since then and no longer hold is told as hub.events_skipped. People sign "+
			"in to the portal again.",
	)
	fmt.Fprintln(out.Out)
	switch {
	case c.NATSURL == "" && m.Has(operator.AuthorityKey):
		fmt.Fprintf(
			out.Out, "Start it with the flags that it had: hubcloud serve --data-dir %s …\n", into,
		)
	case c.NATSURL == "":
		fmt.Fprintf(
			out.Out,
			"Start it with the flags that it had, --ca-cert and --ca-key among them: hubcloud serve --data-dir %s …\n",
			into,
		)
	case m.Has(operator.AuthorityKey):
		fmt.Fprintf(
			out.Out,
			"Start the replicas with the flags that they had. The authority is in %s/ca, for --ca-cert and --ca-key, "+
				"of broker-config too.\n",
			c.Dir,
		)
	default:
		fmt.Fprintln(out.Out, "Start the replicas with the flags that they had.")
	}
	fmt.Fprintln(
		out.Out, "With --postgres-url, give it an empty database: the read models are made anew.",
	)
}

// restore restores into the broker or the data directory that the flags name, and returns which.
func (c *restoreCommand) restore(
	ctx context.Context, m backup.Manifest, out Streams,
) (into string, err error) {
	bar := newTransfer(out.Err, "restore", c.JSON)
	defer bar.end()
	r := operator.Restore{
		Backup: c.Dir, Manifest: m, Replicas: c.LogReplicas, Progress: bar.tell,
		Logger: slog.New(slog.NewTextHandler(out.Err, &slog.HandlerOptions{
			Level: slog.LevelError,
		})),
	}
	if c.NATSURL == "" {
		if c.LogReplicas != 1 {
			return "", usage.Errorf(
				"--log-replicas %d: a data directory holds one copy of each stream", c.LogReplicas,
			)
		}
		return c.DataDir, r.IntoDataDir(ctx, datadir.Dir(c.DataDir))
	}
	credentials, err := streams.ReadCredentials(c.NATSCredentials)
	if err != nil {
		return "", err
	}
	credentials.URL = c.NATSURL
	err = r.IntoBroker(ctx, credentials)
	if errors.Is(err, backup.ErrNotEmpty) {
		return "", fmt.Errorf(
			"nothing was restored: %w: stop the service and remove its streams, or restore into another broker",
			err,
		)
	}
	return c.NATSURL, err
}
