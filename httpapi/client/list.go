package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
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

func (q PageQuery) values() parameters {
	return parameters{"limit": q.Limit, "starting_after": q.StartingAfter}
}

// parameters are what a query may have. Zero values are left out.
type parameters map[string]any

// query returns the query.
func (p parameters) query() url.Values {
	query := url.Values{}
	for name, value := range p {
		text := ""
		switch v := value.(type) {
		case string:
			text = v
		case []string:
			if len(v) > 0 {
				query[name] = v
			}
		case int:
			if v != 0 {
				text = strconv.Itoa(v)
			}
		case bool:
			if v {
				text = "true"
			}
		case *bool:
			if v != nil {
				text = strconv.FormatBool(*v)
			}
		case time.Time:
			if !v.IsZero() {
				text = v.UTC().Format(time.RFC3339Nano)
			}
		default:
			panic(fmt.Sprintf("client: parameter %s has the type %T", name, value))
		}
		if text != "" {
			query.Set(name, text)
		}
	}
	return query
}

// with returns these parameters and others.
func (p parameters) with(others parameters) parameters {
	all := parameters{}
	maps.Copy(all, p)
	maps.Copy(all, others)
	return all
}

// page reads one page.
func page[T any](ctx context.Context, c *Client, path string, query parameters) (Page[T], error) {
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
				yield(
					none,
					fmt.Errorf(
						"%w: a list with has_more does not advance after %q", ErrProtocol, after,
					),
				)
				return
			}
			after = last
		}
	}
}
