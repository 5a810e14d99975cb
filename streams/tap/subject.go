package tap

import (
	"fmt"
	"slices"
	"strings"
)

// Subject is a template for the subjects of published records: {hub_id}, {type} and
// {organization_id} are replaced by the record's values. The dots of a type separate tokens.
// Characters that a subject cannot have, and values that are not known, become "_".
type Subject string

// ParseSubject parses a Subject.
func ParseSubject(text string) (Subject, error) {
	tried := Subject(text).of(Record{Hub: "h", Type: "t", OrgID: "o"})
	if strings.ContainsAny(tried, "{}*> \t\r\n") || slices.Contains(strings.Split(tried, "."), "") {
		return "", fmt.Errorf(
			"subject: must be tokens separated by dots, without wildcards, with no placeholders "+
				"but {hub_id}, {type} and {organization_id}: got %q",
			text,
		)
	}
	return Subject(text), nil
}

// of returns the subject of a record.
func (s Subject) of(r Record) string {
	if !strings.Contains(string(s), "{") {
		return string(s)
	}
	typ := strings.Split(r.Type, ".")
	for i, part := range typ {
		typ[i] = token(part)
	}
	return strings.NewReplacer(
		"{hub_id}", token(string(r.Hub)), "{type}", strings.Join(typ, "."),
		"{organization_id}", token(r.OrgID),
	).Replace(string(s))
}

// token replaces the characters that a token of a subject cannot have.
func token(text string) string {
	if text == "" {
		return "_"
	}
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c == 0x7f || strings.ContainsRune(".*>", c) {
			return '_'
		}
		return c
	}, text)
}
