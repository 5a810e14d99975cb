package views

import (
	"context"
	"sync"
)

// queue is an unbounded first-in, first-out queue. Its users bound it by other means.
type queue[T any] struct {
	mu    sync.Mutex
	items []T
	// wake has a value while there are items that no goroutine has been woken for.
	wake chan struct{}
}

func newQueue[T any]() *queue[T] { return &queue[T]{wake: make(chan struct{}, 1)} }

func (q *queue[T]) push(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.signal()
}

// next waits for the first item and removes it. It returns false if ctx ended first.
func (q *queue[T]) next(ctx context.Context) (item T, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		if len(q.items) > 0 {
			item = q.items[0]
			var none T
			q.items[0] = none // so that the array does not keep it in memory
			q.items = q.items[1:]
			more := len(q.items) > 0
			q.mu.Unlock()
			if more {
				q.signal()
			}
			return item, true
		}
		q.items = nil
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
	return item, false
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
