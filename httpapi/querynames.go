package httpapi

import (
	"slices"
	"strings"

	"hubcloud/domain"
)

// checkNames rejects a raw query that has a name close to one of the known ones: a misspelt filter
// would select everything. Other unknown names are ignored.
func checkNames(raw string, known []string) error {
	for raw != "" && len(known) > 0 {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		name, _, ok := cutPair(pair)
		if !ok || slices.Contains(known, name) {
			continue
		}
		if meant := domain.Closest(name, known); meant != "" {
			return invalid("query: unknown parameter %q; the name is %s", shorten(name), meant)
		}
	}
	return nil
}
