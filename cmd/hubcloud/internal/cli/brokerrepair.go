package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/broker"
)

// brokerRepairCommand repairs the store of an external nats-server.
type brokerRepairCommand struct {
	Store string `arg:"" help:"Folder with the server's streams: store_dir of its configuration, which contains the folder jetstream." type:"path"`
}

// Help returns the long help text.
func (*brokerRepairCommand) Help() string {
	return `Repairs damage that a power cut or a kill can leave in the store of a nats-server: streams with a missing or wrong checksum (meta.sum), which
the server skips at every start ("Missing stream checksum file", "checksums do not match") although their messages are intact. The command
writes the checksums of the configurations and renames unreadable files to *.unreadable. The log names each stream.

Where the disk has damaged stored messages of a stream with one copy, the server would remove all messages behind them, and use their numbers
again. The command marks the damaged ones as lost and keeps all others; the folder damaged has a copy of each file that it changes. For a
directory with holes see hubcloud restore --directory.

STOP THE SERVER FIRST. Run the command as the server's user, on the machine with the disk, then start the server. A stream whose
configuration was unreadable comes back with its messages when it is declared again; for a hub's log, when the hub connects.

The embedded broker does not need this command: the service repairs its store at every start.

  sudo systemctl stop nats-server
  sudo -u nats hubcloud broker-repair /var/lib/nats
  sudo systemctl start nats-server`
}

// Run repairs the store.
func (c *brokerRepairCommand) Run(_ context.Context, out Output) error {
	if _, err := os.Stat(filepath.Join(c.Store, "jetstream")); errors.Is(err, fs.ErrNotExist) {
		return installation.Usagef(
			"%s is not the store of a nats-server: it has no folder jetstream", c.Store,
		)
	} else if err != nil {
		return err
	}
	if err := broker.Repair(c.Store, textLogger(out, slog.LevelInfo)); err != nil {
		return err
	}
	fmt.Fprintln(
		out.Out,
		"The store was checked; the log above names repaired and renamed files. Start the server "+
			"now.",
	)
	return nil
}
