package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"hubcloud/domain"
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
		parts = append(parts, f.name+" "+domain.PlainLine(f.value))
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

// textWriter writes text in UTF-8 to a terminal or a file. It escapes the characters that set the
// direction of the text after them as JSON escapes them, so that they do not act on the rest of the
// line, and JSON keeps its meaning. A write must not end within a character.
type textWriter struct{ w io.Writer }

// belowTerminal returns the writer that w writes to, if that is no terminal.
func belowTerminal(w io.Writer) io.Writer {
	text, ok := w.(textWriter)
	if file, isFile := text.w.(*os.File); ok && !(isFile && term.IsTerminal(int(file.Fd()))) {
		return text.w
	}
	return w
}

// Write writes text.
func (t textWriter) Write(text []byte) (int, error) {
	escaped := text
	if len(domain.PlainPage(text)) != len(text) {
		escaped = nil
		for _, r := range string(text) {
			if unicode.Is(unicode.Bidi_Control, r) {
				escaped = fmt.Appendf(escaped, `\u%04x`, r)
			} else {
				escaped = utf8.AppendRune(escaped, r)
			}
		}
	}
	if _, err := t.w.Write(escaped); err != nil {
		return 0, err
	}
	return len(text), nil
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
		if cells[i] = domain.PlainLine(cell); cell == "" {
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

// orEmpty returns the text, or "" for nil.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// shortTime formats a time to the second, in UTC.
func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
