package portal

import (
	"net/url"
	"slices"

	"hubcloud/domain"
)

// pageSize is how many items of a list a page shows.
const pageSize = 50

// listFields are the query parameters of pages with lists: the item that each list continues after,
// and the filters.
var listFields = []string{"people", "invitations", "keys", "readers", "sites", "hubs", "site", "find"}

// pager is the addresses of the first and the next page of a list; "" for none.
type pager struct{ First, Next string }

// listQuery returns the list parameters of the page's address as a query, "" or beginning with "?".
// change replaces parameters: names and values by turns, where an empty value removes one. The
// actions of forms include the query, so that a person returns to the same part of the list.
func (req *request) listQuery(change ...string) string {
	current, query := req.http.URL.Query(), url.Values{}
	for _, field := range listFields {
		if value := current.Get(field); value != "" {
			query.Set(field, value)
		}
	}
	for i := 0; i < len(change); i += 2 {
		query.Set(change[i], change[i+1])
		if change[i+1] == "" {
			query.Del(change[i])
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// readPage reads one page of the list with that name. The query parameter of the same name has the
// id of the item before the page; if that item no longer exists, readPage reads the first page.
// path is the address of the page with the list, whose section has the list's name as id.
func readPage[T any](
	req *request, path, name string, read func(limit int, after string) (domain.Page[T], error),
	id func(T) string,
) (items []T, links pager, err error) {
	after := req.http.URL.Query().Get(name)
	page, err := read(pageSize, after)
	if after != "" && err != nil && domain.CodeOf(err) == domain.CodeInvalidRequest {
		after = ""
		page, err = read(pageSize, after)
	}
	if err != nil {
		return nil, pager{}, err
	}
	here := req.root() + req.org + "/" + path
	if after != "" {
		links.First = here + req.listQuery(name, "") + "#" + name
	}
	if page.HasMore {
		links.Next = here + req.listQuery(name, id(page.Data[len(page.Data)-1])) + "#" + name
	}
	return page.Data, links, nil
}

// pageInOrder returns the items after the one with the id after, in the order of compare. An id
// that no item has is an invalid_request error.
func pageInOrder[T any](
	all []T, limit int, after string, id func(T) string, compare func(a, b T) int,
) (domain.Page[T], error) {
	all = slices.SortedStableFunc(slices.Values(all), compare)
	if after != "" {
		i := slices.IndexFunc(all, func(item T) bool { return id(item) == after })
		if i < 0 {
			return domain.Page[T]{}, domain.Errorf(
				domain.CodeInvalidRequest, "the item before this page no longer exists",
			)
		}
		all = all[i+1:]
	}
	n := min(limit, len(all))
	return domain.Page[T]{Data: all[:n], HasMore: n < len(all)}, nil
}
