package readmodel

import "hubcloud/domain"

// pageOf returns the page of rows. The query returned at most one row more than the limit; that one
// sets HasMore.
func pageOf[R, V any](rows []R, limit int, view func(R) V) domain.Page[V] {
	page := domain.Page[V]{HasMore: len(rows) > limit}
	rows = rows[:min(limit, len(rows))]
	page.Data = make([]V, 0, len(rows))
	for _, row := range rows {
		page.Data = append(page.Data, view(row))
	}
	return page
}

// unknownStart returns the error about a starting_after that is not in the list.
func unknownStart(what string) error {
	return domain.Errorf(
		domain.CodeInvalidRequest,
		"starting_after: there is no such %s; give the id of the last item of the page before",
		what,
	)
}
