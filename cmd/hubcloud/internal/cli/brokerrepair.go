package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/streams/broker"
)

// brokerRepairCommand mends the store of a nats-server of one's own.
type brokerRepairCommand struct {
	Store string `arg:"" help:"Folder where the server keeps streams: store_dir of its configuration, with the folder jetstream in it." type:"path"`
}

// Help says what a repair does.
func (*brokerRepairCommand) Help() string {
	return `Mends what a power cut or a kill can leave in the store of a nats-server: streams with a missing or wrong checksum (meta.sum), which the server
passes over at every start ("Missing stream checksum file", "checksums do not match") although their messages are there. It writes the sums
that belong to the configurations, sets aside as *.unreadable what cannot be read, and removes nothing. The log names each stream.

STOP THE SERVER FIRST, and run this as the user that the server runs as, on the machine with the disk. Then start the server. A stream whose
configuration was unreadable is there again, with its messages, once it is declared again: a hub's log when the hub connects.

The embedded broker needs none of this: the service repairs its store at every start.

  sudo systemctl stop nats-server
  sudo -u nats hubcloud broker-repair /var/lib/nats
  sudo systemctl start nats-server`
}

// Run repairs the store.
func (c *brokerRepairCommand) Run(_ context.Context, out Streams) error {
	if _, err := os.Stat(filepath.Join(c.Store, "jetstream")); errors.Is(err, fs.ErrNotExist) {
		return usage.Errorf("%s is no store of a nats-server: it has no folder jetstream", c.Store)
	} else if err != nil {
		return err
	}
	if err := broker.Repair(c.Store, slog.New(slog.NewTextHandler(out.Err, nil))); err != nil {
		return err
	}
	fmt.Fprintln(
		out.Out,
		"The store was looked through, and what is named above was repaired or set aside. Start the server now.",
	)
	return nil
}
