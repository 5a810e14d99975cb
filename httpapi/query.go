package httpapi

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// maxListPage is the most items that a list answers with at once, and its default.
const maxListPage = 50

// query is the parameters of a request that its route knows.
type query []parameter

type parameter struct{ name, value string }

// readQuery takes the known parameters out of a raw query and leaves others alone. A known one may
// appear once, and must have a value.
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
			return nil, invalid("%s: its percent-encoding is malformed", name)
		}
		if value == "" {
			return nil, invalid("%s: must have a value", name)
		}
		q = append(q, parameter{name, value})
	}
	return q, nil
}

// get gives a parameter that was given.
func (q query) get(name string) (string, bool) {
	for _, p := range q {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// integer gives a parameter as a decimal number from low to high, or otherwise when it was not
// given.
func (q query) integer(name string, low, high, otherwise int) (int, error) {
	value, ok := q.get(name)
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(value, 10, 32) // takes digits only: no sign, no space
	if err != nil || n < uint64(low) || n > uint64(high) {
		return 0, invalid("%s: must be an integer from %d to %d", name, low, high)
	}
	return int(n), nil
}

// readListing reads the parameters of a list of what has UUIDs for ids; after is "" for the list's
// beginning.
func (x *exchange) readListing(items string) (limit int, after string, err error) {
	q, err := readQuery(x.r.URL.RawQuery, "limit", "starting_after")
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
