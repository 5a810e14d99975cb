package client

import "encoding/json"

// Change is what an update does to a text that can be cleared. The zero Change leaves it as it is.
type Change struct {
	made bool
	to   *string
}

// SetTo changes the text.
func SetTo(text string) Change { return Change{made: true, to: &text} }

// Clear removes the text.
func Clear() Change { return Change{made: true} }

// IsZero says whether nothing changes. encoding/json asks it before it writes the field.
func (c Change) IsZero() bool { return !c.made }

// MarshalJSON writes the new text, or null.
func (c Change) MarshalJSON() ([]byte, error) { return json.Marshal(c.to) }
