package tap

import (
	"fmt"
	"slices"
	"strings"
)

// Subject is where records are published. In it, {hub_id}, {type} and {organization_id} stand for
// those of each record: the type's dots part tokens, what a subject cannot hold becomes "_", and so
// does what is not known.
type Subject string

// ParseSubject reads a Subject.
func ParseSubject(text string) (Subject, error) {
	tried := Subject(text).of(Record{Hub: "h", Type: "t", OrgID: "o"})
	if strings.ContainsAny(tried, "{}*> \t\r\n") || slices.Contains(strings.Split(tried, "."), "") {
		return "", fmt.Errorf(
			"%q is no subject to publish to: words with dots between them, in which {hub_id}, "+
				"{type} and {organization_id} are replaced",
			text,
		)
	}
	return Subject(text), nil
}

// of gives the subject of a record.
func (s Subject) of(r Record) string {
	if !strings.Contains(string(s), "{") {
		return string(s)
	}
	typ := strings.Split(r.Type, ".")
	for i, part := range typ {
		typ[i] = token(part)
	}
	return strings.NewReplacer("{hub_id}", token(string(r.Hub)), "{type}", strings.Join(typ, "."), "{organization_id}", token(r.OrgID)).
		Replace(string(s))
}

// token makes a text fit for one token of a subject.
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
