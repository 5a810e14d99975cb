package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/streams/backup"
)

// backupCommand takes a backup of a running installation.
type backupCommand struct {
	operatorFlags
	outputFlags
	Dir     string `arg:"" help:"Folder for the backup: new, or empty." type:"path"`
	HubLogs bool   `help:"Take the hub logs too, the last 24 hours' events: they are most of what there is."`
	CACert  string `help:"Certificate of the authority, when the service runs with one of the operator's." placeholder:"FILE" name:"ca-cert" type:"path"`
	CAKey   string `help:"Its key." placeholder:"FILE" name:"ca-key" type:"path"`
}

// Help says what is in a backup.
func (*backupCommand) Help() string {
	return `Takes everything that an installation needs to go on: the directory log (organizations, members, invitations, API keys, sites, hubs and their
certificates), presence, how far each hub's log is stored, answers to commands with an idempotency key, waiting mails, settings, the
broker's credentials, and the certificate authority. The service runs on; nothing waits.

The folder then holds THE KEY OF THE CERTIFICATE AUTHORITY and the broker's passwords: keep it as you keep those. It is made for its owner alone
(0700), and is not encrypted. "sha256sum -c SHA256SUMS" in it, or "hubcloud restore --check", say whether it is whole.

Not in it: hub logs, unless --hub-logs is given; sessions of the portal; PostgreSQL, which is made anew from the rest; the flags that the service
runs with. A folder without SHA256SUMS holds no backup: it was not finished.

  hubcloud backup --data-dir /var/lib/hubcloud /backups/$(date +%F)
  hubcloud backup --nats-url nats://broker:4222 --nats-credentials credentials.json --ca-cert ca.pem --ca-key ca-key.pem /backups/monday`
}

// Validate checks what the flags say together; kong calls it once they are parsed.
func (c *backupCommand) Validate() error {
	if (c.CACert == "") != (c.CAKey == "") {
		return errors.New("--ca-cert and --ca-key go together")
	}
	return nil
}

// taken is what backup prints as JSON.
type taken struct {
	Dir          string    `json:"dir"`
	Installation string    `json:"installation"`
	At           time.Time `json:"at"`
	Directory    uint64    `json:"directory_sequence"`
	HubLogs      bool      `json:"hub_logs"`
	Authority    bool      `json:"authority"`
	Files        int       `json:"files"`
	Bytes        int64     `json:"bytes"`
}

func takenOf(dir string, m backup.Manifest) taken {
	return taken{
		Dir: dir, Installation: m.Installation, At: m.At, Directory: m.Directory,
		HubLogs: m.HubLogs, Authority: m.Has(operator.AuthorityKey),
		Files: len(m.Files), Bytes: m.Bytes(),
	}
}

// Run takes it.
func (c *backupCommand) Run(ctx context.Context, out Streams) error {
	s, err := operator.Connect(ctx, c.service())
	if err != nil {
		return err
	}
	defer s.Close()
	files, err := c.files(out)
	if err != nil {
		return err
	}
	bar := newTransfer(out.Err, "backup", c.JSON)
	defer bar.end()
	m, err := backup.Write(ctx, s.Conns, backup.Config{
		Dir: c.Dir, HubLogs: c.HubLogs, Installation: s.Settings.ID, Files: files, Tell: bar.tell,
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("no backup was taken: %w", err)
	}
	if c.JSON {
		return printObject(out.Out, takenOf(c.Dir, m))
	}
	logs := "without hub logs"
	if m.HubLogs {
		logs = "with the hub logs"
	}
	fmt.Fprintf(
		out.Out,
		"%s holds the installation as it was at %s: %d events of the directory, %s; %d files, %s.\n",
		c.Dir, m.At.Format(time.RFC3339), m.Directory, logs, len(m.Files), byteText(m.Bytes()),
	)
	if m.Has(operator.AuthorityKey) {
		fmt.Fprintln(
			out.Out,
			"It holds the key of the certificate authority: whoever has it can make certificates "+
				"of any hub. Keep it accordingly.",
		)
	}
	return nil
}

// files reads what goes into the backup from beside the broker.
func (c *backupCommand) files(out Streams) (map[string][]byte, error) {
	dir := datadir.Dir(c.DataDir)
	from := map[string]string{}
	started, err := dir.Started()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	embedded := false
	if c.NATSURL == "" {
		bound, err := dir.Endpoints()
		if err != nil {
			return nil, err
		}
		embedded = bound.EmbeddedBroker()
	}
	if embedded {
		from[operator.BrokerCredentials] = dir.Path(operator.BrokerCredentials)
	}
	switch {
	case c.CACert != "":
		from[operator.AuthorityCertificate], from[operator.AuthorityKey] = c.CACert, c.CAKey
	case embedded && (started == nil || started.CACert == ""):
		from[operator.AuthorityCertificate], from[operator.AuthorityKey] = dir.Path(operator.AuthorityCertificate), dir.Path(operator.AuthorityKey)
	default:
		fmt.Fprintln(
			out.Err,
			"hubcloud: the certificate authority is one of the operator's and not in this "+
				"backup: keep its files yourself, "+
				"or name them with --ca-cert and --ca-key. Without them every hub must enrol again.",
		)
	}
	files := map[string][]byte{}
	for name, path := range from {
		if files[name], err = os.ReadFile(filepath.FromSlash(path)); err != nil {
			return nil, fmt.Errorf("read what the backup needs: %w", err)
		}
	}
	return files, nil
}
