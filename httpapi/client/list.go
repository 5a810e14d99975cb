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
	// HasMore reports that items follow the last one of Data: pass its id as
	// PageQuery.StartingAfter.
	HasMore bool `json:"has_more"`
	// NextStartingAfter is what to pass instead if it is not "": a page of states may have no items
	// although HasMore is set.
	NextStartingAfter string `json:"next_starting_after,omitempty"`
}

// PageQuery selects a page of a list.
type PageQuery struct {
	// Limit is the most items on the page, up to 50. Defaults to 50.
	Limit int
	// StartingAfter is the id of the last item of the previous page; "" selects the first page.
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
	return ask[Page[T]](ctx, c, call{method: http.MethodGet, path: path, query: query})
}

// all yields the items of a list and reads pages as needed. An error ends the sequence.
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
			last := p.NextStartingAfter
			if last == "" && len(p.Data) > 0 {
				last = id(p.Data[len(p.Data)-1])
			}
			if last == "" || last == after { // the same page would repeat forever
				yield(none, fmt.Errorf("%w: a list with has_more does not advance after %q", ErrProtocol, after))
				return
			}
			after = last
		}
	}
}
