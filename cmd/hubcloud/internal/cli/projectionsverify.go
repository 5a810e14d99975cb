package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"hubcloud/projections"
)

type projectionsVerifyCommand struct {
	readModels
	outputFlags
}

// Help says what is compared.
func (*projectionsVerifyCommand) Help() string {
	return `Builds the read models anew from the streams in a scratch schema, and compares those in use with them as of exactly the same event, row by row and
column by column, while reads and writes go on. Prints every difference: its table, the row's key, the column, what is there and what should be. The
scratch schema is dropped afterwards; after a kill the next verify or rebuild drops it. The exit status is 1 when there is a difference.

Differences are mended by "hubcloud projections rebuild". Rows of hubs whose presence changes all the time are compared once they stand still for a second.

With --json: one object a projection with "name", "sequence", "rows" and "differences", a list of {table, key, what, column, live, rebuilt}; "what" is
changed, missing (the read models in use lack the row) or extra (only they have it).

Example: hubcloud projections verify && echo the read models are what the log says`
}

// errDifferences says that there are differences, which have been outputFlags.
var errDifferences = errors.New(
	"the read models in use are not what the streams say: `hubcloud projections rebuild` mends them",
)

// Run compares.
func (c *projectionsVerifyCommand) Run(ctx context.Context, out Streams) (err error) {
	models, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	bar := newBuildBar(out.Err, c.JSON)
	report, err := newVerifyReport(out.Out, bar, c.JSON)
	if err != nil {
		return err
	}
	defer report.close()
	all, err := models.Verify(ctx, bar.show, report.add)
	bar.finish()
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; nothing was changed")
	}
	if err != nil {
		return err
	}
	differences := 0
	for _, v := range all {
		differences += v.Differences
		if err := report.end(v); err != nil {
			return err
		}
	}
	if differences > 0 {
		return errDifferences
	}
	return nil
}

// verifyReport prints differences as they are found, or collects them for --json: outside memory,
// since there can be as many as there are rows.
type verifyReport struct {
	to    io.Writer
	bar   *buildBar
	spool map[string]*os.File
}

func newVerifyReport(to io.Writer, bar *buildBar, asJSON bool) (*verifyReport, error) {
	r := &verifyReport{to: to, bar: bar}
	if !asJSON {
		return r, nil
	}
	r.spool = map[string]*os.File{}
	for _, name := range []string{projections.DirectoryProjection, projections.PresenceProjection} {
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
		file.Close() // what it held has been outputFlags
		os.Remove(file.Name())
	}
}

// differenceLine is a difference as --json prints it.
type differenceLine struct {
	Table   string  `json:"table"`
	Key     rowKey  `json:"key"`
	What    string  `json:"what"`
	Column  string  `json:"column"`
	Live    *string `json:"live"`
	Rebuilt *string `json:"rebuilt"`
}

// rowKey is a row's key, as an object whose members are in the key's order.
type rowKey []projections.KeyColumn

// MarshalJSON writes the object.
func (k rowKey) MarshalJSON() ([]byte, error) {
	var object bytes.Buffer
	object.WriteByte('{')
	for i, column := range k {
		name, err := json.Marshal(column.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(column.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			object.WriteByte(',')
		}
		object.Write(append(append(name, ':'), value...))
	}
	object.WriteByte('}')
	return object.Bytes(), nil
}

func (r *verifyReport) add(projection string, d projections.Difference) error {
	if r.spool == nil {
		r.bar.finish()
		_, err := fmt.Fprintln(r.to, inWords(d))
		return err
	}
	raw, err := json.Marshal(
		differenceLine{
			Table:   d.Table,
			Key:     d.Key,
			What:    d.What,
			Column:  d.Column,
			Live:    d.Live,
			Rebuilt: d.Rebuilt,
		},
	)
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

func inWords(d projections.Difference) string {
	var key []string
	for _, column := range d.Key {
		key = append(key, fmt.Sprintf("%s=%q", column.Name, column.Value))
	}
	row := d.Table + " " + strings.Join(key, " ")
	switch d.What {
	case projections.DifferenceMissing:
		return row + ": the row is missing"
	case projections.DifferenceExtra:
		return row + ": the row should not be there"
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

// end prints what became of a projection.
func (r *verifyReport) end(v projections.Verified) error {
	if r.spool == nil {
		moving := ""
		if v.Moving > 0 {
			moving = fmt.Sprintf(
				"; %d hubs changed all the time and could not be compared", v.Moving,
			)
		}
		_, err := fmt.Fprintf(
			r.to, "%s: %d rows compared as of event %d, %d differences%s\n", v.Name, v.Rows,
			v.Sequence, v.Differences, moving,
		)
		return err
	}
	if _, err := fmt.Fprintf(r.to, `{"name":%q,"sequence":%d,"rows":%d,"moving":%d,"differences":[`, v.Name, v.Sequence, v.Rows, v.Moving); err != nil {
		return err
	}
	file := r.spool[v.Name]
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(r.to, file); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.to, "]}")
	return err
}
