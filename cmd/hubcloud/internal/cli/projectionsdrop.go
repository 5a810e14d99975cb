package cli

import (
	"context"
	"fmt"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/projections/rebuild"
)

type projectionsDropCommand struct {
	readModelFlags
	DryRun bool `help:"Only print what would be dropped, and how much space that would free." name:"dry-run"`
}

// droppedJSON is a schema with --json.
type droppedJSON struct {
	Schema string `json:"schema"`
	Kind   string `json:"kind"`
	Bytes  int64  `json:"bytes"`
	// Dropped reports whether the schema was dropped. Kept is the reason why it was not.
	Dropped bool   `json:"dropped"`
	Kept    string `json:"kept,omitempty"`
}

// kindNames describe the kinds of unused read models.
var kindNames = map[string]string{
	rebuild.KindOld:          "replaced by a rebuild",
	rebuild.KindOtherVersion: "of another version of the program",
	rebuild.KindUnfinished:   "left by an interrupted rebuild or verify",
}

// Run drops the unused read models, or prints them.
func (c *projectionsDropCommand) Run(ctx context.Context, out Output) error {
	models, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	act := models.Drop
	if c.DryRun {
		act = models.Unused
	}
	all, err := act(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		lines := make([]droppedJSON, 0, len(all))
		for _, d := range all {
			lines = append(lines, droppedJSON{
				Schema: d.Schema, Kind: d.Kind, Bytes: d.Bytes, Dropped: d.Kept == "" && !c.DryRun,
				Kept: d.Kept,
			})
		}
		return list(out.Out, c.outputFlags, each(lines), nil, nil)
	}
	return c.printDropped(out, all)
}

// printDropped prints one line per schema, and the space that is free now, or would be.
func (c *projectionsDropCommand) printDropped(out Output, all []rebuild.Droppable) error {
	dropped, freed := "dropped", "freed"
	if c.DryRun {
		dropped, freed = "would drop", "would free"
	}
	bytes, count := int64(0), 0
	for _, d := range all {
		verb := dropped
		if d.Kept != "" {
			verb = "kept, because " + d.Kept + ":"
		} else {
			bytes += d.Bytes
			count++
		}
		_, err := fmt.Fprintf(
			out.Out, "%s %s (%s), %s\n", verb, d.Schema, kindNames[d.Kind], doctor.Size(d.Bytes),
		)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(
		out.Out, "%s %s in %d schemas; the read models in use are unchanged\n", freed,
		doctor.Size(bytes), count,
	)
	return err
}
