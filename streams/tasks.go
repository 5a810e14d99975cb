package streams

import (
	"context"
	"hash/fnv"
	"reflect"
	"sync"
)

// PartOf returns the part, from 0, of the thing with an id, where things are divided into parts.
func PartOf(id string, parts int) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(parts))
}

// Tasks is work without an end that replicas share: a replica runs the tasks of the parts whose leases
// it holds. Each task has a key, which decides its part, and a value. It is safe for concurrent use.
type Tasks[T any] struct {
	mu      sync.Mutex
	byOwner map[string]map[string]T
	changed chan struct{} // closed at the next change
}

// NewTasks returns a Tasks without a task.
func NewTasks[T any]() *Tasks[T] {
	return &Tasks[T]{byOwner: map[string]map[string]T{}, changed: make(chan struct{})}
}

// Set replaces the tasks of an owner, by their keys. It keeps the map.
func (t *Tasks[T]) Set(owner string, tasks map[string]T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byOwner[owner] = tasks
	close(t.changed)
	t.changed = make(chan struct{})
}

// of returns the tasks of a part, and a channel that is closed when tasks change.
func (t *Tasks[T]) of(part, parts int) (map[string]T, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]T{}
	for _, tasks := range t.byOwner {
		for key, value := range tasks {
			if PartOf(key, parts) == part {
				all[key] = value
			}
		}
	}
	return all, t.changed
}

// Serve runs the tasks of a part, each on a goroutine, until ctx ends, and waits for them then. A task
// that is removed, or whose value changes, is stopped by its context; it begins with its new value
// when run has returned.
func (t *Tasks[T]) Serve(
	ctx context.Context, part, parts int, run func(ctx context.Context, key string, value T),
) error {
	type running struct {
		value T
		stop  context.CancelFunc
		ended chan struct{}
	}
	var all sync.WaitGroup
	defer all.Wait()
	active := map[string]running{}
	for {
		wanted, changed := t.of(part, parts)
		for key, r := range active {
			value, ok := wanted[key]
			if ok && reflect.DeepEqual(value, r.value) {
				delete(wanted, key)
				continue
			}
			if r.stop(); !ok {
				delete(active, key)
			}
		}
		for key, value := range wanted {
			former, replaces := active[key]
			working, stop := context.WithCancel(ctx)
			r := running{value, stop, make(chan struct{})}
			active[key] = r
			all.Go(func() {
				defer close(r.ended)
				defer stop()
				if replaces {
					<-former.ended
				}
				run(working, key, value)
			})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
