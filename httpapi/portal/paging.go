package portal

import (
	"net/url"

	"hubcloud/domain"
)

// pageSize is how many of a list a page shows.
const pageSize = 50

// listFields are what the addresses of pages with lists may say: after which item each list goes
// on, and what it is narrowed to.
var listFields = []string{"people", "invitations", "keys", "sites", "hubs", "site", "find"}

// pager is the ways to the other pages of a list; empty where there is none.
type pager struct{ First, Next string }

// listQuery gives what the address of this page says of its lists, with one of them at another
// place, as the end of an address. Forms have it in theirs, so that who has done something comes
// back to the same place.
func (req *request) listQuery(change ...string) string {
	asked, said := req.http.URL.Query(), url.Values{}
	for _, field := range listFields {
		if value := asked.Get(field); value != "" {
			said.Set(field, value)
		}
	}
	for i := 0; i < len(change); i += 2 {
		said.Set(change[i], change[i+1])
		if change[i+1] == "" {
			said.Del(change[i])
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "?" + said.Encode()
}

// readPage reads the page of a list that the visitor asks for: the field of the address with the
// list's name has the id of the item before it. What is not there any more begins with the first
// page. page is where the list is, and the name that of its section, too.
func readPage[T any](
	req *request, page, name string, read func(limit int, after string) (domain.Page[T], error),
	id func(T) string,
) (items []T, ways pager, err error) {
	after := req.http.URL.Query().Get(name)
	found, err := read(pageSize, after)
	if after != "" && err != nil && domain.CodeOf(err) == domain.CodeInvalidRequest {
		after = ""
		found, err = read(pageSize, after)
	}
	if err != nil {
		return nil, pager{}, err
	}
	here := req.root() + req.member.OrgID + "/" + page
	if after != "" {
		ways.First = here + req.listQuery(name, "") + "#" + name
	}
	if found.HasMore {
		ways.Next = here + req.listQuery(name, id(found.Data[len(found.Data)-1])) + "#" + name
	}
	return found.Data, ways, nil
}
