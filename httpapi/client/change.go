package client

import "encoding/json"

// Change changes a text that can be cleared. The zero Change leaves the text unchanged.
type Change struct {
	made bool
	to   *string
}

// SetTo returns a Change to a new text.
func SetTo(text string) Change { return Change{made: true, to: &text} }

// Clear returns a Change that removes the text.
func Clear() Change { return Change{made: true} }

// IsZero reports whether nothing changes. encoding/json then omits the field.
func (c Change) IsZero() bool { return !c.made }

// MarshalJSON returns the new text, or null.
func (c Change) MarshalJSON() ([]byte, error) { return json.Marshal(c.to) }
