package check

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Status is the state of a line.
type Status string

// The states of a line.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	NotSeen Status = "not seen"
)

// Result is a line and its state.
type Result struct {
	Line
	Status Status
	// Detail states what is wrong, for a failed line, or what is missing, for one not seen. It is
	// one line of at most 500 characters.
	Detail string
	// Message is the message of the hub that showed a failure, cut to 400 characters. It is empty
	// if no message did, as for one that did not come.
	Message string
}

const (
	maxDetail  = 500
	maxMessage = 400
)

// Report is the outcome of a check: the selected lines in the order of the list.
type Report []Result

// OK reports whether every line has passed, apart from recommended lines and from optional ones
// that were not seen.
func (r Report) OK() bool {
	for _, result := range r {
		if !result.OK() {
			return false
		}
	}
	return true
}

// OK reports whether the line does not make the check fail.
func (r Result) OK() bool {
	return r.Status == Passed || r.Recommended || r.Status == NotSeen && r.Optional
}

// bounded returns text as one line of at most limit characters. Control characters and invalid
// UTF-8 become the replacement character: the text may come from the hub and go to a terminal.
func bounded(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), 4*limit)], string(utf8.RuneError)))
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// The methods below must be called with the mutex held.

// fail makes a line failed, unless it is already. message is the hub's message, or nil.
func (c *Check) fail(id string, message []byte, format string, args ...any) {
	c.decide(id, Failed, message, fmt.Sprintf(format, args...))
}

// pass makes lines passed, unless they are decided.
func (c *Check) pass(ids ...string) {
	for _, id := range ids {
		c.decide(id, Passed, nil, "")
	}
}

// hint sets the detail of a line that is not decided.
func (c *Check) hint(id, format string, args ...any) {
	if r, ok := c.results[id]; ok && r.Status == NotSeen {
		r.Detail = bounded(fmt.Sprintf(format, args...), maxDetail)
	}
}

// hintFirst sets the detail of a line that is not decided and has none.
func (c *Check) hintFirst(id, format string, args ...any) {
	if r, ok := c.results[id]; ok && r.Detail == "" {
		c.hint(id, format, args...)
	}
}

// note passes on what the person at the hub must know, once.
func (c *Check) note(text string) {
	if !c.notes[text] {
		c.notes[text] = true
		c.cfg.OnNote(text)
	}
}

func (c *Check) decide(id string, status Status, message []byte, detail string) {
	if !isLine(id) {
		panic(fmt.Sprintf("check: no line %q", id))
	}
	r, ok := c.results[id]
	if !ok || c.stopped || r.Status == Failed || r.Status == status {
		return
	}
	r.Status, r.Detail = status, bounded(detail, maxDetail)
	r.Message = bounded(string(message), maxMessage)
	c.cfg.OnLine(*r)
	c.notify()
}
