package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Messages takes an event stream apart as it comes (section 9.2 of the HTML standard, with line
// feeds alone, which is what the service sends) and holds each message to the document. It is used
// by one goroutine.
type Messages struct {
	schema Schema
	report func(error)

	rest    []byte // of a line that has not ended yet
	message map[string]any
	comment bool
}

// Write takes what came. It never fails.
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

// Read takes all of a stream. What has not ended at its end is no message.
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

// dispatch is called at the empty line that ends a message or a comment.
func (m *Messages) dispatch() {
	message := m.message
	if message == nil && !m.comment {
		m.report(fmt.Errorf("message: is empty"))
	}
	m.message, m.comment = nil, false
	if message == nil {
		return
	}
	if err := m.schema.validate(message); err != nil {
		m.report(fmt.Errorf("message: %w\nin %v", err, message))
		return
	}
	text, ok := message["data"].(string)
	if !ok {
		return
	}
	var event struct{ Cursor, Type string }
	if err := json.Unmarshal([]byte(text), &event); err != nil || event.Cursor != message["id"] ||
		event.Type != message["event"] {
		m.report(
			fmt.Errorf(
				"message: id %q and event %q go with another event: %s", message["id"],
				message["event"], text,
			),
		)
	}
}
