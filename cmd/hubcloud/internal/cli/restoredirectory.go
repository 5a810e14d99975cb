package cli

import (
	"context"
	"fmt"
	"log/slog"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams/disk"
)

// fillDirectory fills the holes of the directory of a stopped broker.
func (c *restoreCommand) fillDirectory(ctx context.Context, out Output) error {
	store := c.Store
	if store == "" {
		dir := installation.Dir(c.DataDir)
		lock, err := dir.Lock()
		if err != nil {
			return err
		}
		defer lock.Release()
		store = dir.Path("nats", "durable")
	}
	filled, err := installation.FillDirectory{
		Store: store, External: c.Store != "", Source: c.Dir, AcceptLoss: c.AcceptLoss,
		Logger: textLogger(out, slog.LevelWarn),
	}.Run(ctx)
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	if err := disk.GiveTree(store); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, filled)
	}
	if filled.Gone {
		fmt.Fprintf(out.Out, `The directory was created again with %d events, %d of which record a loss. What was changed after the copy is lost: look through
the API keys, members and hub certificates, and revoke again what was revoked then. Build the read models again after the start: hubcloud
projections rebuild. Start the service with its former flags.
`, len(filled.Restored)+len(filled.Lost), len(filled.Lost))
		return nil
	}
	if len(filled.Restored)+len(filled.Lost) == 0 {
		fmt.Fprintln(out.Out, "The directory has no holes. Nothing was changed.")
		return nil
	}
	fmt.Fprintf(out.Out, "%d events of the directory were put back.\n", len(filled.Restored))
	if n := len(filled.Lost); n > 0 {
		fmt.Fprintf(out.Out, `The loss of %d events is recorded, at the sequences %v. These changes never happened now: look through the API keys,
members and hub certificates, and revoke again what was revoked then. Build the read models again after the start: hubcloud projections rebuild
`, n, filled.Lost)
	}
	fmt.Fprintln(out.Out, "Start the service with its former flags.")
	return nil
}
