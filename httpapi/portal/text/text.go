// Package text has the texts of the portal's pages, so that they can be read as a whole and
// translated. Templates get a text with {{text "name"}}; scripts get the texts of Scripts with the
// page.
//
// The texts are plain, short English. They address the reader as "you", and name things as the
// pages do: organization, site, hub, device, channel, member, invitation, API key.
package text

import (
	"fmt"
	"strings"
)

// Get returns the text with that name. A name without a text is an error.
func Get(name string) (string, error) {
	text, ok := Pages[name]
	if !ok {
		return "", fmt.Errorf("no text %q", name)
	}
	return text, nil
}

// Fill returns a text with values in place of its placeholders. Pairs are names and values: the
// value of "name" replaces {name}.
func Fill(text string, pairs ...string) string {
	replaced := make([]string, 0, len(pairs))
	for i := 0; i+1 < len(pairs); i += 2 {
		replaced = append(replaced, "{"+pairs[i]+"}", pairs[i+1])
	}
	return strings.NewReplacer(replaced...).Replace(text)
}
