package cli

import (
	"context"
	"fmt"

	"hubcloud/projections"
)

type projectionsDropCommand struct {
	readModels
	outputFlags
	DryRun bool `help:"Only say what would be dropped, and what it frees." name:"dry-run"`
}

// Help says what is dropped.
func (*projectionsDropCommand) Help() string {
	return `Drops read models that nobody uses any more: old ones, which a rebuild has taken the place of; those of another version of the program that does not
run any more; and what a rebuild or verify has left that was cut off. Those in use are never dropped. Nothing is lost: everything in them can
be built again from the streams.

Example: hubcloud projections drop --dry-run`
}

// dropped is a schema as --json prints it.
type dropped struct {
	Schema string `json:"schema"`
	Kind   string `json:"kind"`
	Bytes  int64  `json:"bytes"`
	// Dropped says that it is gone; Kept why it is not.
	Dropped bool   `json:"dropped"`
	Kept    string `json:"kept,omitempty"`
}

var kindNames = map[string]string{
	projections.KindOld:          "replaced by a rebuild",
	projections.KindOtherVersion: "of another version of the program",
	projections.KindUnfinished:   "left by a rebuild or verify that was cut off",
}

// Run drops them, or says which it would.
func (c *projectionsDropCommand) Run(ctx context.Context, out Streams) error {
	models, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	drop := models.Drop
	if c.DryRun {
		drop = models.Beside
	}
	all, err := drop(ctx)
	if err != nil {
		return err
	}
	freed, count := int64(0), 0
	for _, d := range all {
		if d.Kept == "" {
			freed += d.Bytes
			count++
		}
		if c.JSON {
			if err := printObject(out.Out, dropped{
				Schema: d.Schema, Kind: d.Kind, Bytes: d.Bytes, Dropped: d.Kept == "" && !c.DryRun,
				Kept: d.Kept,
			}); err != nil {
				return err
			}
			continue
		}
		verb := "dropped"
		switch {
		case d.Kept != "":
			verb = "kept, since " + d.Kept + ":"
		case c.DryRun:
			verb = "would drop"
		}
		if _, err := fmt.Fprintf(out.Out, "%s %s (%s), %.1f MB\n", verb, d.Schema, kindNames[d.Kind], float64(d.Bytes)/1e6); err != nil {
			return err
		}
	}
	if c.JSON {
		return nil
	}
	verb := "freed"
	if c.DryRun {
		verb = "would free"
	}
	_, err = fmt.Fprintf(
		out.Out, "%s %.1f MB in %d schemas; the read models in use are untouched\n", verb,
		float64(freed)/1e6, count,
	)
	return err
}
