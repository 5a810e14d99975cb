package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// outputFlags select the form of a command's result.
type outputFlags struct {
	JSON bool `help:"Print JSON, one object per line." name:"json"`
}

// field is one named value of a result.
type field struct{ name, value string }

// print writes a result: one line of text, or a JSON object whose members are in the order of the
// fields.
func (f outputFlags) print(w io.Writer, fields ...field) error {
	if f.JSON {
		return printJSON(w, object(fields))
	}
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		parts = append(parts, f.name+" "+f.value)
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, "  "))
	return err
}

// object is a JSON object of strings. Its members have the order of the fields.
type object []field

// MarshalJSON returns the object.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		text.Write(append(append(name, ':'), value...))
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// printJSON writes an object as one line of JSON.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table writes rows in aligned columns.
type table struct{ w *tabwriter.Writer }

// newTable returns a table and writes its header.
func newTable(w io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row. An empty cell shows as a dash.
func (t table) row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = printable(cell); cell == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// flush writes the table.
func (t table) flush() error { return t.w.Flush() }

// printList writes items: a table for people, or with --json an object per line.
func printList[T any](
	out Output, flags outputFlags, header []string, items []T, cells func(T) []string,
) error {
	if flags.JSON {
		for _, item := range items {
			if err := printJSON(out.Out, item); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(out.Out, header...)
	for _, item := range items {
		t.row(cells(item)...)
	}
	return t.flush()
}

// printable replaces control characters, which names from outside may contain: escape sequences
// would act on the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, text)
}

// orEmpty returns the text, or "" for nil.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// shortTime formats a time to the second, in UTC.
func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
