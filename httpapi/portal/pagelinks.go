package portal

import (
	"net/url"
	"strconv"
)

// pageLink is a link to one page of a list.
type pageLink struct {
	Number  int
	Address string
	Current bool
}

// pageLinks returns links to the first page, the last page and two pages on each side of the
// current one, which counts from 0. The links keep the query. It returns nil for a single page.
func pageLinks(current, pages int, query url.Values) []pageLink {
	if pages < 2 {
		return nil
	}
	var links []pageLink
	for i := range pages {
		if i != 0 && i != pages-1 && (i < current-2 || i > current+2) {
			continue
		}
		q := url.Values{"page": {strconv.Itoa(i + 1)}}
		for name, values := range query {
			if len(values) > 0 && values[0] != "" {
				q.Set(name, values[0])
			}
		}
		links = append(
			links, pageLink{Number: i + 1, Address: "?" + q.Encode(), Current: i == current},
		)
	}
	return links
}
