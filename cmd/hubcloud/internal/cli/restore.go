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

// Help returns the long help text.
func (*restoreCommand) Help() string {
	return `Checks the sums of the whole backup first, then restores it into an empty data directory or an empty broker. No service may run there. Start
the service afterwards, with the flags that it had.

The installation then has its state AT THE TIME OF THE BACKUP. All later changes are lost: what was added later is missing, and what was removed
later is back. API keys, members and hub certificates that were revoked after the backup ARE VALID AGAIN; revoke them again.

Events: if the backup has no hub logs, all hub events are lost; requests with a cursor are answered 410, and clients resync as the API
describes. With hub logs, cursors of events in the backup stay valid. Hubs keep their certificates and their numbering; the event
hub.log_reset marks where a log was restored, and hub.events_skipped reports what a hub sent after the backup and no longer has. People must
sign in to the portal again. With --postgres-url, give the service an empty database.

A DAMAGED DIRECTORY: where the disk has lost events of the directory, no service starts, since nobody can tell who owns what. With --directory,
the command puts these events back in their places, from a backup or from a copy of another server's store, and changes nothing else; all later
changes stay. Stop the service first; with a nats-server of your own, stop that, and give its --store. What no copy has is lost:
--accept-loss records that, and the service starts again. A change that is lost then never happened: a revoked key or certificate may be valid
again, a hub may have its former owner. The log of the service and hubcloud doctor name the times of the lost events. Where the whole
directory is gone, the command creates it again, from a backup or a copy; with --accept-loss alone, an empty one.

  hubcloud restore --directory --data-dir /var/lib/hubcloud /backups/monday
  hubcloud restore --directory --data-dir /var/lib/hubcloud --accept-loss

Repeat the command after an interruption: it starts the restore again. Until the restore is finished, no service starts there.

  hubcloud restore --data-dir /var/lib/hubcloud /backups/monday
  hubcloud restore --check /backups/monday`
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
