package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/backup"
)

// backupCommand backs up a running installation.
type backupCommand struct {
	operatorCommand
	Dir     string `arg:"" help:"New or empty folder for the backup." type:"path"`
	HubLogs bool   `help:"Include the hub logs: all events within --event-retention. They are most of an installation's data."`
	CACert  string `help:"Certificate of the authority, if the service runs with --ca-cert." placeholder:"FILE" name:"ca-cert" type:"path"`
	CAKey   string `help:"Key of --ca-cert." placeholder:"FILE" name:"ca-key" type:"path"`
}

// Validate checks the flags. The flag parser calls it.
func (c *backupCommand) Validate() error {
	if (c.CACert == "") != (c.CAKey == "") {
		return errors.New("--ca-cert and --ca-key need each other")
	}
	return nil
}

// backupJSON describes a backup with --json.
type backupJSON struct {
	Dir          string    `json:"dir"`
	Installation string    `json:"installation"`
	At           time.Time `json:"at"`
	Directory    uint64    `json:"directory_sequence"`
	HubLogs      bool      `json:"hub_logs"`
	Authority    bool      `json:"authority"`
	Files        int       `json:"files"`
	Bytes        int64     `json:"bytes"`
}

func backupJSONOf(dir string, m backup.Manifest) backupJSON {
	return backupJSON{
		Dir: dir, Installation: m.Installation, At: m.At, Directory: m.Directory,
		HubLogs: m.HubLogs, Authority: m.Has(installation.AuthorityKey),
		Files: len(m.Files), Bytes: m.Bytes(),
	}
}

// Run writes the backup.
func (c *backupCommand) Run(ctx context.Context, out Output) error {
	s, err := installation.Connect(ctx, c.service())
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
		Dir: c.Dir, Format: installation.Format, HubLogs: c.HubLogs, Installation: s.Settings.ID,
		Files: files, Progress: bar.report,
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("backup failed: %w", err)
	}
	if c.JSON {
		return printJSON(out.Out, backupJSONOf(c.Dir, m))
	}
	logs := "without hub logs"
	if m.HubLogs {
		logs = "with the hub logs"
	}
	fmt.Fprintf(
		out.Out,
		"%s has the installation of %s: %d events of the directory, %s; %d files, %s.\n",
		c.Dir, m.At.Format(time.RFC3339), m.Directory, logs, len(m.Files), doctor.Size(m.Bytes()),
	)
	if m.Has(installation.AuthorityKey) {
		fmt.Fprintln(
			out.Out,
			"It contains the key of the certificate authority, which can issue a certificate for "+
				"any hub. Protect it accordingly.",
		)
	}
	return nil
}

// files reads the files of the backup that are not in the broker, by their names in the backup.
func (c *backupCommand) files(out Output) (map[string][]byte, error) {
	dir := installation.Dir(c.DataDir)
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
		from[installation.BrokerCredentials] = dir.Path(installation.BrokerCredentials)
	}
	switch {
	case c.CACert != "":
		from[installation.AuthorityCertificate], from[installation.AuthorityKey] = c.CACert, c.CAKey
	case embedded && (started == nil || started.CACert == ""):
		from[installation.AuthorityCertificate] = dir.Path(installation.AuthorityCertificate)
		from[installation.AuthorityKey] = dir.Path(installation.AuthorityKey)
	default:
		fmt.Fprintln(
			out.Err,
			"hubcloud: this backup does not contain your certificate authority: back up its files "+
				"yourself, or name them with --ca-cert and --ca-key. Without them every hub must "+
				"enrol again.",
		)
	}
	files := map[string][]byte{}
	for name, path := range from {
		if files[name], err = os.ReadFile(filepath.FromSlash(path)); err != nil {
			return nil, fmt.Errorf("read a file for the backup: %w", err)
		}
	}
	return files, nil
}
