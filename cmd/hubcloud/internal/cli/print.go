package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// outputFlags is how the operator's commands answer: for people, or with --json one JSON object (a
// list: one a line).
type outputFlags struct {
	JSON bool `help:"Print one JSON object instead of text for people." name:"json"`
}

// field is one thing that a command answers, named as in its JSON.
type field struct{ name, value string }

// print writes one result.
func (p outputFlags) print(w io.Writer, fields ...field) error {
	if p.JSON {
		object := make([]string, 0, len(fields))
		for _, f := range fields {
			name, err := json.Marshal(f.name)
			if err != nil {
				return err
			}
			value, err := json.Marshal(f.value)
			if err != nil {
				return err
			}
			object = append(object, string(name)+":"+string(value))
		}
		_, err := fmt.Fprintf(w, "{%s}\n", strings.Join(object, ","))
		return err
	}
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		parts = append(parts, f.name+" "+f.value)
	}
	_, err := fmt.Fprintln(w, strings.Join(parts, "  "))
	return err
}

// printObject writes one JSON object on a line.
func printObject(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}
