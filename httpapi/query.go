package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hubcloud/domain"
)

// maxListPage is the most items on one page of a list, and the default.
const maxListPage = 50

// query holds the query parameters that a route knows.
type query []parameter

type parameter struct{ name, value string }

// readQuery returns the parameters that the route takes, and ignores others.
func (req *request) readQuery() (query, error) {
	return readQuery(req.http.URL.RawQuery, req.route.query)
}

// readQuery returns the known parameters of a raw query and ignores others. A known parameter must
// have a value, which is UTF-8 without control characters, and may be given once.
func readQuery(raw string, known []string) (query, error) {
	q := make(query, 0, len(known))
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		name, value, ok := cutPair(pair)
		if !ok || !slices.Contains(known, name) {
			continue
		}
		if _, repeated := q.get(name); repeated {
			return nil, invalid("%s: must be given once", name)
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return nil, invalid("%s: must have valid percent-encoding", name)
		}
		if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, invalid("%s: must be UTF-8 without control characters", name)
		}
		if value == "" {
			return nil, invalid("%s: must have a value", name)
		}
		q = append(q, parameter{name, value})
	}
	return q, nil
}

// cutPair returns the name of a parameter, and its value as it is encoded; ok is false if the
// encoding of the name is invalid.
func cutPair(pair string) (name, value string, ok bool) {
	name, value, _ = strings.Cut(pair, "=")
	name, err := url.QueryUnescape(name)
	return name, value, err == nil
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

// timestamp returns a parameter that must be a timestamp, and false if it was not given.
func (q query) timestamp(name string) (at time.Time, given bool, err error) {
	text, given := q.get(name)
	if !given {
		return at, false, nil
	}
	if at, err = time.Parse(time.RFC3339Nano, text); err == nil {
		return at, true, nil
	}
	// An unescaped + is a space in a query.
	if _, err = time.Parse(time.RFC3339Nano, strings.ReplaceAll(text, " ", "+")); err == nil {
		return at, true, invalid("%s: write the + of the offset as %%2B, since + is a space in a "+
			"query, as in 2026-01-02T03:04:05%%2B01:00", name)
	}
	return at, true, invalid("%s: must be a timestamp such as 2026-01-02T03:04:05Z", name)
}

// readListQuery reads the parameters of a list whose items have UUIDs; after is "" for the first
// page.
func (req *request) readListQuery(items string) (limit int, after string, err error) {
	q, err := req.readQuery()
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
