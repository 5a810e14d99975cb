package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hubcloud/projections/rebuild"
)

type projectionsVerifyCommand struct {
	readModelFlags
}

// errDifferences reports that verify found and printed differences.
var errDifferences = errors.New(
	"the read models in use differ from the streams: `hubcloud projections rebuild` repairs them",
)

// Run compares the read models and prints the differences.
func (c *projectionsVerifyCommand) Run(ctx context.Context, out Output) (err error) {
	models, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	bar := newBuildProgress(out.Err, c.JSON)
	found := map[string][]differenceJSON{} // by projection; only with --json
	all, err := models.Verify(ctx, bar.report, func(projection string, d rebuild.Difference) error {
		if c.JSON {
			found[projection] = append(found[projection], differenceJSONOf(d))
			return nil
		}
		bar.end()
		_, err := fmt.Fprintln(out.Out, inWords(d))
		return err
	})
	bar.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("interrupted; nothing was changed")
	case err != nil:
		return err
	}
	differences := 0
	for _, v := range all {
		differences += v.Differences
		moving := ""
		if v.Moving > 0 {
			moving = fmt.Sprintf("; %d hubs kept changing and were not compared", v.Moving)
		}
		err := c.show(
			out.Out, verifiedJSON{
				Name: v.Name, Sequence: v.Sequence, Rows: v.Rows, Moving: v.Moving,
				Differences: append([]differenceJSON{}, found[v.Name]...),
			},
			"%s: %d rows compared as of event %d, %d differences%s\n", v.Name, v.Rows, v.Sequence,
			v.Differences, moving,
		)
		if err != nil {
			return err
		}
	}
	if differences > 0 {
		return errDifferences
	}
	return nil
}

// verifiedJSON is the result for a projection with --json.
type verifiedJSON struct {
	Name        string           `json:"name"`
	Sequence    uint64           `json:"sequence"`
	Rows        int              `json:"rows"`
	Moving      int              `json:"moving"`
	Differences []differenceJSON `json:"differences"`
}

// differenceJSON is a difference with --json.
type differenceJSON struct {
	Table   string  `json:"table"`
	Key     object  `json:"key"`
	What    string  `json:"what"`
	Column  string  `json:"column"`
	Live    *string `json:"live"`
	Rebuilt *string `json:"rebuilt"`
}

func differenceJSONOf(d rebuild.Difference) differenceJSON {
	key := make(object, 0, len(d.Key)) // with the columns in the key's order
	for _, column := range d.Key {
		key = append(key, field{column.Name, column.Value})
	}
	return differenceJSON{
		Table: d.Table, Key: key, What: d.What, Column: d.Column, Live: d.Live, Rebuilt: d.Rebuilt,
	}
}

// inWords returns a difference as a sentence.
func inWords(d rebuild.Difference) string {
	var key []string
	for _, column := range d.Key {
		key = append(key, fmt.Sprintf("%s=%q", column.Name, column.Value))
	}
	row := d.Table + " " + strings.Join(key, " ")
	switch d.What {
	case rebuild.DifferenceMissing:
		return row + ": the row is missing"
	case rebuild.DifferenceExtra:
		return row + ": the row should not exist"
	default:
		return fmt.Sprintf(
			"%s: %s is %s and should be %s", row, d.Column, quotedOrNull(d.Live),
			quotedOrNull(d.Rebuilt),
		)
	}
}

func quotedOrNull(text *string) string {
	if text == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *text)
}
