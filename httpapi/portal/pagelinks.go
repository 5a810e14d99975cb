package portal

import (
	"net/url"
	"strconv"
)

// pageLink leads to a part of a list that is too long for one page.
type pageLink struct {
	Number  int
	Address string
	Current bool
}

// pageLinks gives the ways to the pages around the current one, which counts from 0, with the rest
// of the address as it is: the first, the last and two on each side. None when there is one page
// only.
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
