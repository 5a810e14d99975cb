package projector

import (
	"slices"

	"hubcloud/projections/schema"
)

// rows is a list of rows in the order in which they were put, with an index by key.
type rows[K comparable, R any] struct {
	list  []R
	index map[K]int
}

// get returns the row of a key; nil if there is none. The pointer is valid until the next put or
// remove.
func (r *rows[K, R]) get(key K) *R {
	if i, ok := r.index[key]; ok {
		return &r.list[i]
	}
	return nil
}

func (r *rows[K, R]) has(key K) bool { return r.get(key) != nil }

// put appends a row. If the key has a row already, that row stays in the list and get returns the
// new one.
func (r *rows[K, R]) put(key K, row R) {
	if r.index == nil {
		r.index = map[K]int{}
	}
	r.index[key] = len(r.list)
	r.list = append(r.list, row)
}

// remove removes the row of a key, if there is one.
func (r *rows[K, R]) remove(key K) {
	i, ok := r.index[key]
	if !ok {
		return
	}
	r.list = slices.Delete(r.list, i, i+1)
	delete(r.index, key)
	for other, j := range r.index {
		if j > i {
			r.index[other] = j - 1
		}
	}
}

// change returns the statement that changes a row for each of list. columns are its arguments.
func change[R any](what, sql string, list []R, columns ...func([]R) any) schema.Statement {
	return schema.Statement{What: what, SQL: sql, Rows: len(list), Args: func() []any {
		args := make([]any, len(columns))
		for i, of := range columns {
			args[i] = of(list)
		}
		return args
	}}
}

// changeAny is change for a statement that changes any number of rows.
func changeAny[R any](what, sql string, list []R, columns ...func([]R) any) schema.Statement {
	statement := change(what, sql, list, columns...)
	if len(list) > 0 {
		statement.Rows = schema.AnyRows
	}
	return statement
}

// column returns a function that returns one column of rows.
func column[R, C any](of func(R) C) func([]R) any {
	return func(rows []R) any { return values(rows, of) }
}

// values returns a value of each row.
func values[R, C any](rows []R, of func(R) C) []C {
	all := make([]C, len(rows))
	for i, row := range rows {
		all[i] = of(row)
	}
	return all
}
