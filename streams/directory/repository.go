package directory

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"hubcloud/domain"
)

// maxConflicts is how often Update decides again before it gives up. With the pauses in between,
// other processes have then been faster for about 2 s.
const maxConflicts = 12

// Repository loads and changes the aggregates of one kind. It caches the aggregates that were used
// last, up to a fixed number, so that Get reads only newer events.
type Repository[S any] struct {
	log     *Log
	subject func(id string) string
	evolve  func(S, domain.Event) (S, error)
	size    int
	updates keyedMutex

	mu     sync.Mutex
	cached map[string]*list.Element
	// used holds the cachedState of each cached aggregate, the one used last in front.
	used *list.List
}

type cachedState[S any] struct {
	id    string
	state S
	seq   uint64
}

// NewRepository returns a repository that caches up to size aggregates, at least 1. subject returns
// the subject of an aggregate; its id must be one or several valid subject tokens. evolve folds an
// event into a state and must not change the state that it gets.
func NewRepository[S any](
	l *Log, subject func(id string) string, evolve func(S, domain.Event) (S, error), size int,
) *Repository[S] {
	return &Repository[S]{
		log: l, subject: subject, evolve: evolve, size: max(size, 1),
		cached: make(map[string]*list.Element), used: list.New(),
	}
}

// Get returns an aggregate with every event that was acknowledged before the call, and the sequence
// of its last event. An aggregate without events is the zero state and 0. A temporary fault is a
// domain.Unavailable.
func (r *Repository[S]) Get(ctx context.Context, id string) (S, uint64, error) {
	state, seq := r.lookup(id)
	last, err := r.log.Load(ctx, r.subject(id), seq, func(_ uint64, e domain.Event) (err error) {
		state, err = r.evolve(state, e)
		return err
	})
	if err != nil {
		var none S
		return none, 0, readError(err)
	}
	r.cache(id, state, last)
	return state, last, nil
}

// Update calls decide with the current state of an aggregate and appends the events that decide
// returns, if any. It returns the new state and the sequence of the aggregate's last event, also
// when there was nothing to append. When another process appended first, Update calls decide again
// with the new state, up to maxConflicts times. It returns an error of decide unchanged, with the
// state that decide got. It returns a temporary fault, such as ErrConflict in the end or
// jsapi.ErrOutcomeUnknown, as a domain.Unavailable whose message says whether anything was changed.
func (r *Repository[S]) Update(
	ctx context.Context, id string, decide func(S) ([]domain.Event, error),
) (S, uint64, error) {
	defer r.updates.lock(ctx, id)()
	for pause, conflicts := firstPause, 0; ; pause, conflicts = min(2*pause, maxPause), conflicts+1 {
		state, seq, err := r.Get(ctx, id)
		if err != nil {
			return state, 0, err
		}
		events, err := decide(state)
		if err != nil || len(events) == 0 {
			return state, seq, err
		}
		last, err := r.log.Append(ctx, r.subject(id), seq, events...)
		if err == nil {
			return r.fold(id, state, last, events)
		}
		if !errors.Is(err, ErrConflict) || conflicts == maxConflicts || !sleep(ctx, pause) {
			return state, seq, writeError(err)
		}
	}
}

func (r *Repository[S]) fold(
	id string, state S, last uint64, events []domain.Event,
) (S, uint64, error) {
	for _, e := range events {
		var err error
		if state, err = r.evolve(state, e); err != nil {
			return state, last, fmt.Errorf(
				"directory: %s is stored up to sequence %d and cannot be folded: %w", r.subject(id),
				last, err,
			)
		}
	}
	r.cache(id, state, last)
	return state, last, nil
}

// lookup returns the cached state; the zero state and 0 if there is none.
func (r *Repository[S]) lookup(id string) (state S, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.cached[id]; ok {
		r.used.MoveToFront(element)
		known := element.Value.(cachedState[S])
		return known.state, known.seq
	}
	return state, 0
}

// cache keeps a state unless a newer one is cached. Aggregates without events are not cached:
// requests with made-up ids must not evict real ones.
func (r *Repository[S]) cache(id string, state S, seq uint64) {
	if seq == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.cached[id]; ok {
		if element.Value.(cachedState[S]).seq < seq {
			element.Value = cachedState[S]{id, state, seq}
		}
		return
	}
	r.cached[id] = r.used.PushFront(cachedState[S]{id, state, seq})
	if r.used.Len() > r.size {
		oldest := r.used.Remove(r.used.Back()).(cachedState[S])
		delete(r.cached, oldest.id)
	}
}
