package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
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

// print writes a result: one line of text, or a JSON object.
func (f outputFlags) print(w io.Writer, fields ...field) error {
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		parts = append(parts, f.name+" "+domain.PlainLine(f.value))
	}
	return f.show(w, object(fields), "%s\n", strings.Join(parts, "  "))
}

// object is a JSON object of strings. Its members have the order of the fields.
type object []field

// MarshalJSON returns the object.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte("{")
	for i, f := range o {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}'), nil
}

// printJSON writes an object as one line of JSON.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// textWriter writes text in UTF-8 to a terminal or a file. It escapes control characters that JSON
// may have as they are, which are commands to some terminals, and characters that set the direction
// of the text after them. It does so as JSON does, which keeps its meaning. A write must not end
// within a character.
type textWriter struct{ w io.Writer }

// belowTerminal returns the writer that w writes to, if that is no terminal.
func belowTerminal(w io.Writer) io.Writer {
	text, ok := w.(textWriter)
	if file, isFile := text.w.(*os.File); ok && !(isFile && term.IsTerminal(int(file.Fd()))) {
		return text.w
	}
	return w
}

// isActive reports whether a terminal does something else with r than to show it.
func isActive(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r >= 0x7f && unicode.IsControl(r)
}

// Write writes text.
func (t textWriter) Write(text []byte) (int, error) {
	escaped := text
	if bytes.ContainsFunc(text, isActive) {
		escaped = nil
		for _, r := range string(text) {
			if isActive(r) {
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

// show prints a result: with --json the value, otherwise a text.
func (f outputFlags) show(w io.Writer, value any, format string, args ...any) error {
	if f.JSON {
		return printJSON(w, value)
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// list prints items: with --json an object per line, each as soon as it is there, otherwise a
// table. An empty cell shows as a dash. It ends with the first error of items.
func list[T any](
	w io.Writer, f outputFlags, items iter.Seq2[T, error], header []string, cells func(T) []string,
) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells []string) error {
		for i, cell := range cells {
			cells[i] = cmp.Or(domain.PlainLine(cell), "-")
		}
		_, err := fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
		return err
	}
	if !f.JSON {
		if err := row(header); err != nil {
			return err
		}
	}
	for item, err := range items {
		switch {
		case err != nil:
		case f.JSON:
			err = printJSON(w, item)
		default:
			err = row(cells(item))
		}
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

// each yields the items of a slice.
func each[T any](items []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// orEmpty returns the text, or "" for nil.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// timeOrEmpty formats a time as shortTime does, "" for nil.
func timeOrEmpty(t *time.Time) string {
	if t == nil {
		return ""
	}
	return shortTime(*t)
}

// shortTime formats a time to the second, in UTC.
func shortTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
