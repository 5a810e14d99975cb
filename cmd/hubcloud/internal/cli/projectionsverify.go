package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
)

type projectionsVerifyCommand struct {
	readModelFlags
	outputFlags
}

// Help returns the long help text.
func (*projectionsVerifyCommand) Help() string {
	return `Builds the read models again from the streams in temporary schemas, and compares those in use with them at the same event, column by column,
while reads and writes continue. Prints every difference: table, row, column, the value in use and the rebuilt value. The temporary schemas are
dropped afterwards; after a kill, the next verify or rebuild drops it. The exit code is 1 when there is a difference.

"hubcloud projections rebuild" repairs differences. A hub whose presence keeps changing is compared once it has not changed for a second.

With --json: one object per projection with "name", "sequence", "rows", "moving" (hubs that kept changing and were not compared) and
"differences", a list of {table, key, what, column, live, rebuilt}; "what" is changed, missing (the read models in use lack the row) or extra (only they have it).

Example: hubcloud projections verify && echo the read models match the log`
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
	report, err := newVerifyReport(out.Out, bar, c.JSON)
	if err != nil {
		return err
	}
	defer report.close()
	all, err := models.Verify(ctx, bar.report, report.add)
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
		if err := report.finish(v); err != nil {
			return err
		}
	}
	if differences > 0 {
		return errDifferences
	}
	return nil
}

// verifyReport prints differences as they are found. With --json it collects them in files: there
// can be as many differences as rows.
type verifyReport struct {
	to    io.Writer
	bar   *buildProgress
	spool map[string]*os.File
}

func newVerifyReport(to io.Writer, bar *buildProgress, asJSON bool) (*verifyReport, error) {
	r := &verifyReport{to: to, bar: bar}
	if !asJSON {
		return r, nil
	}
	r.spool = map[string]*os.File{}
	for _, name := range schema.Names() {
		file, err := os.CreateTemp("", "hubcloud-verify-")
		if err != nil {
			r.close()
			return nil, err
		}
		r.spool[name] = file
	}
	return r, nil
}

func (r *verifyReport) close() {
	for _, file := range r.spool {
		file.Close() // finish has printed its content
		os.Remove(file.Name())
	}
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

// keyObject returns the key of a row, with the columns in the key's order.
func keyObject(key []rebuild.KeyColumn) object {
	columns := make(object, 0, len(key))
	for _, column := range key {
		columns = append(columns, field{column.Name, column.Value})
	}
	return columns
}

// add reports a difference.
func (r *verifyReport) add(projection string, d rebuild.Difference) error {
	if r.spool == nil {
		r.bar.end()
		_, err := fmt.Fprintln(r.to, inWords(d))
		return err
	}
	raw, err := json.Marshal(differenceJSON{
		Table: d.Table, Key: keyObject(d.Key), What: d.What, Column: d.Column, Live: d.Live,
		Rebuilt: d.Rebuilt,
	})
	if err != nil {
		return err
	}
	at, err := r.spool[projection].Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if at > 0 {
		raw = append([]byte(","), raw...)
	}
	_, err = r.spool[projection].Write(raw)
	return err
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

// finish prints the result for a projection.
func (r *verifyReport) finish(v rebuild.Verified) error {
	if r.spool == nil {
		moving := ""
		if v.Moving > 0 {
			moving = fmt.Sprintf("; %d hubs kept changing and were not compared", v.Moving)
		}
		_, err := fmt.Fprintf(
			r.to, "%s: %d rows compared as of event %d, %d differences%s\n", v.Name, v.Rows,
			v.Sequence, v.Differences, moving,
		)
		return err
	}
	_, err := fmt.Fprintf(
		r.to, `{"name":%q,"sequence":%d,"rows":%d,"moving":%d,"differences":[`, v.Name,
		v.Sequence, v.Rows, v.Moving,
	)
	if err != nil {
		return err
	}
	file := r.spool[v.Name]
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(r.to, file); err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.to, "]}")
	return err
}
