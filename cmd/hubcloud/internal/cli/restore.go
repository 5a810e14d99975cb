package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
	"hubcloud/streams/backup"
)

// restoreCommand restores a backup.
type restoreCommand struct {
	outputFlags
	Dir             string `arg:"" optional:"" help:"Folder with the backup." type:"path"`
	Check           bool   `help:"Only check the backup and describe it."`
	Directory       bool   `help:"Only put back the lost events of the directory, from a backup or from a copy of a broker's store."`
	AcceptLoss      bool   `help:"With --directory: record the loss of what no copy has."`
	Store           string `help:"With --directory: store of a stopped nats-server of your own (store_dir), instead of a data directory." type:"path" placeholder:"DIR"`
	DataDir         string `help:"New or empty data directory to restore into." default:"./data" type:"path"`
	NATSURL         string `help:"Empty external broker to restore into, instead of a data directory." name:"nats-url" placeholder:"URL"`
	NATSCredentials string `help:"Credentials file for --nats-url." name:"nats-credentials" type:"path" placeholder:"FILE"`
	LogReplicas     int    `help:"Copies of each stream in a cluster, 1 or 3, as for serve." default:"1"`
}

// Validate checks the flags. The flag parser calls it.
func (c *restoreCommand) Validate() error {
	if c.LogReplicas != 1 && c.LogReplicas != 3 {
		return fmt.Errorf("--log-replicas %d: must be 1 or 3", c.LogReplicas)
	}
	switch {
	case c.Directory && (c.Check || c.NATSURL != ""):
		return errors.New("--directory is for a stopped broker: without --check and --nats-url")
	case !c.Directory && (c.AcceptLoss || c.Store != ""):
		return errors.New("--accept-loss and --store need --directory")
	case c.Dir == "" && !c.AcceptLoss:
		return errors.New("name the folder with the backup")
	}
	if c.NATSURL != "" && c.NATSCredentials == "" && !c.Check {
		return errors.New("--nats-url needs --nats-credentials")
	}
	return nil
}

// Run checks the backup and restores it.
func (c *restoreCommand) Run(ctx context.Context, out Output) error {
	if c.Directory {
		return c.fillDirectory(ctx, out)
	}
	bar := newTransfer(out.Err, "check", c.JSON)
	defer bar.end()
	m, err := backup.Check(ctx, c.Dir, installation.Format, bar.report)
	bar.end()
	if err != nil && c.Check {
		return err
	}
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	if c.Check {
		if c.JSON {
			return printJSON(out.Out, backupJSONOf(c.Dir, m))
		}
		fmt.Fprintf(
			out.Out, "%s is complete: %d files, %s. It has the installation %s at %s.\n",
			c.Dir, len(m.Files), doctor.Size(m.Bytes()), m.Installation, m.At.Format(time.RFC3339),
		)
		return nil
	}
	into, err := c.restore(ctx, m, out)
	if err != nil {
		return err
	}
	if c.JSON {
		done := backupJSONOf(c.Dir, m)
		return printJSON(out.Out, struct {
			backupJSON
			Into string `json:"restored_into"`
		}{done, into})
	}
	c.report(m, into, out)
	return nil
}

// report prints what was restored, what is lost, and what to do.
func (c *restoreCommand) report(m backup.Manifest, into string, out Output) {
	events := "All hub events are lost; cursors answer 410, and clients resync."
	if m.HubLogs {
		events = "Events up to then are restored; cursors of later events answer 410."
	}
	fmt.Fprintf(out.Out, `%[1]s has the installation at %[2]s, %[3]s ago.

All changes after %[2]s are lost:
  - organizations, sites, hubs, members, invitations and API keys that were added later are missing;
  - API keys, members, invitations and hub certificates that were REVOKED OR REMOVED LATER ARE VALID AGAIN: revoke them again;
  - a later command that is repeated with its Idempotency-Key runs again.
%[4]s
The event hub.events_skipped reports what a hub sent later and no longer has. People must sign in to the portal again.

%[5]s
With --postgres-url, use an empty database: the read models are built again.
`, into, m.At.Format(time.RFC3339), time.Since(m.At).Round(time.Second), events, c.howToStart(m, into))
}

// howToStart returns how to start the service on what was restored.
func (c *restoreCommand) howToStart(m backup.Manifest, into string) string {
	embedded, authority := c.NATSURL == "", m.Has(installation.AuthorityKey)
	switch {
	case embedded && authority:
		return fmt.Sprintf(
			"Start the service with its former flags: hubcloud serve --data-dir %s …", into,
		)
	case embedded:
		return fmt.Sprintf(
			"Start the service with its former flags, including --ca-cert and --ca-key: hubcloud "+
				"serve --data-dir %s …", into,
		)
	case authority:
		return fmt.Sprintf(
			"Start the replicas with their former flags. The authority for --ca-cert and "+
				"--ca-key, also of broker-config, is in %s/ca.", c.Dir,
		)
	}
	return "Start the replicas with their former flags."
}

// restore restores into the broker or the data directory that the flags name, and returns which.
func (c *restoreCommand) restore(
	ctx context.Context, m backup.Manifest, out Output,
) (into string, err error) {
	bar := newTransfer(out.Err, "restore", c.JSON)
	defer bar.end()
	r := installation.Restore{
		Backup: c.Dir, Manifest: m, Replicas: c.LogReplicas, Progress: bar.report,
		Logger: textLogger(out, slog.LevelError),
	}
	if c.NATSURL == "" {
		if c.LogReplicas != 1 {
			return "", installation.Usagef(
				"--log-replicas %d: a data directory holds one copy of each stream", c.LogReplicas,
			)
		}
		return c.DataDir, r.IntoDataDir(ctx, installation.Dir(c.DataDir))
	}
	credentials, err := streams.ReadCredentials(c.NATSCredentials)
	if err != nil {
		return "", err
	}
	credentials.URL = c.NATSURL
	err = r.IntoBroker(ctx, credentials)
	if errors.Is(err, backup.ErrNotEmpty) {
		return "", fmt.Errorf(
			"nothing was restored: %w: stop the service and remove its streams, or restore into "+
				"another broker",
			err,
		)
	}
	return c.NATSURL, err
}
