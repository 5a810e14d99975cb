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
