package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Messages parses an event stream (section 9.2 of the HTML standard, with line feeds only, as the
// service sends it) and checks each message against the document. It is used by one goroutine.
type Messages struct {
	schema schema
	// byCursor reports that the id of a message is the cursor of its event.
	byCursor bool
	report   func(error)

	rest    []byte // of a line that has not ended yet
	message map[string]any
	comment bool
}

// Write parses more of the stream. It never fails.
func (m *Messages) Write(p []byte) (int, error) {
	text := append(m.rest, p...)
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if !ended {
			break
		}
		m.line(string(line))
		text = rest
	}
	m.rest = append([]byte(nil), text...)
	return len(p), nil
}

// Read parses a stream to its end. An incomplete message at the end is ignored.
func (m *Messages) Read(r io.Reader) { _, _ = io.Copy(m, r) } // a stream that is cut off ends there

func (m *Messages) line(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case line == "":
		m.dispatch()
	case name == "" && value == "keepalive":
		m.comment = true
	case name == "":
		m.report(fmt.Errorf("comment %q: only `: keepalive` is described", value))
	default:
		if m.message == nil {
			m.message = map[string]any{}
		}
		if _, repeated := m.message[name]; repeated {
			m.report(fmt.Errorf("message: has more than one line of %s", name))
		}
		m.message[name] = value
	}
}

// dispatch handles the empty line that ends a message or comment.
func (m *Messages) dispatch() {
	message := m.message
	if message == nil && !m.comment {
		m.report(fmt.Errorf("message: is empty"))
	}
	m.message, m.comment = nil, false
	if message == nil {
		return
	}
	if err := m.schema(message); err != nil {
		m.report(fmt.Errorf("message: %w\nin %v", err, message))
		return
	}
	text, ok := message["data"].(string)
	if !ok {
		return
	}
	var event struct{ Cursor, Type string }
	if err := json.Unmarshal([]byte(text), &event); err != nil ||
		m.byCursor && event.Cursor != message["id"] || event.Type != message["event"] {
		m.report(
			fmt.Errorf(
				"message: id %q and event %q go with another event: %s", message["id"],
				message["event"], text,
			),
		)
	}
}
