package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// maxListPage is the most items on one page of a list, and the default.
const maxListPage = 50

// query holds the query parameters that a route knows.
type query []parameter

type parameter struct{ name, value string }

// readQuery returns the known parameters of a raw query and ignores others. A known parameter must
// have a value and may be given once.
func readQuery(raw string, known ...string) (query, error) {
	q := make(query, 0, len(known))
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || !slices.Contains(known, name) {
			continue
		}
		if _, repeated := q.get(name); repeated {
			return nil, invalid("%s: must be given once", name)
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, invalid("%s: must have valid percent-encoding", name)
		}
		if value == "" {
			return nil, invalid("%s: must have a value", name)
		}
		q = append(q, parameter{name, value})
	}
	return q, nil
}

// get returns a parameter, and false if it was not given.
func (q query) get(name string) (string, bool) {
	for _, p := range q {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// integer returns a parameter that must be a decimal number from low to high, or fallback if it was
// not given.
func (q query) integer(name string, low, high, fallback int) (int, error) {
	value, ok := q.get(name)
	if !ok {
		return fallback, nil
	}
	n, err := strconv.ParseUint(value, 10, 32) // digits only: no sign, no space
	if err != nil || n < uint64(low) || n > uint64(high) {
		return 0, invalid("%s: must be an integer from %d to %d", name, low, high)
	}
	return int(n), nil
}

// readListQuery reads the parameters of a list whose items have UUIDs; after is "" for the first
// page.
func (req *request) readListQuery(items string) (limit int, after string, err error) {
	q, err := readQuery(req.http.URL.RawQuery, "limit", "starting_after")
	if err != nil {
		return 0, "", err
	}
	if limit, err = q.integer("limit", 1, maxListPage, maxListPage); err != nil {
		return 0, "", err
	}
	after, given := q.get("starting_after")
	if given && !domain.IsUUID(after) {
		return 0, "", invalid("starting_after: must be an id from the list of %s", items)
	}
	return limit, after, nil
}
