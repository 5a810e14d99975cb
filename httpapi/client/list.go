package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// Page is one page of a list.
type Page[T any] struct {
	Data []T `json:"data"`
	// HasMore says that items follow the last of Data: pass its id as PageQuery.StartingAfter.
	HasMore bool `json:"has_more"`
}

// PageQuery says which page of a list.
type PageQuery struct {
	// Limit is how many items at most; 0 leaves it to the service, which gives 50, its most.
	Limit int
	// StartingAfter is the id of the last item of the page before; "" begins the list.
	StartingAfter string
}

func (q PageQuery) values() url.Values {
	values := url.Values{}
	if q.Limit != 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.StartingAfter != "" {
		values.Set("starting_after", q.StartingAfter)
	}
	return values
}

// page reads one page.
func page[T any](ctx context.Context, c *Client, path string, query url.Values) (Page[T], error) {
	var p Page[T]
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query}, &p)
	return p, err
}

// all reads a list page by page, as far as the loop over it goes. An error ends it.
func all[T any](read func(after string) (Page[T], error), id func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for after := ""; ; {
			p, err := read(after)
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range p.Data {
				if !yield(item, nil) {
					return
				}
			}
			if !p.HasMore {
				return
			}
			last := ""
			if len(p.Data) > 0 {
				last = id(p.Data[len(p.Data)-1])
			}
			if last == "" || last == after { // the same page would come again for ever
				yield(
					none,
					fmt.Errorf(
						"%w: a list that has more does not go on after %q", ErrProtocol, after,
					),
				)
				return
			}
			after = last
		}
	}
}
