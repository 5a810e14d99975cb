package portal

import "strings"

// fill returns a text with values in place of its placeholders. Pairs are names and values: the
// value of "name" replaces {name}.
func fill(text string, pairs ...string) string {
	replaced := make([]string, 0, len(pairs))
	for i := 0; i+1 < len(pairs); i += 2 {
		replaced = append(replaced, "{"+pairs[i]+"}", pairs[i+1])
	}
	return strings.NewReplacer(replaced...).Replace(text)
}
