package directory

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"hubcloud/domain"
)

// maxConflicts is how often Update decides again before it gives up: with the pauses in between,
// about 2 s of others winning each time.
const maxConflicts = 12

// Repository loads and changes the aggregates of one kind. Those used last stay warm in memory: a
// Get then asks only for what is new. The number of warm ones is bounded; those used longest ago go
// first.
type Repository[S any] struct {
	log     *Log
	subject func(id string) string
	evolve  func(S, domain.Event) (S, error)
	size    int
	turns   turns

	mu   sync.Mutex
	warm map[string]*list.Element
	// used holds the warm aggregates (warmState), the one used last in front.
	used *list.List
}

type warmState[S any] struct {
	id    string
	state S
	seq   uint64
}

// NewRepository makes a repository that keeps up to size aggregates warm, at least 1. subject gives
// the subject of an aggregate by its id, which must be one valid token or several; evolve folds an
// event into a state and must not change the state given.
func NewRepository[S any](
	l *Log, subject func(id string) string, evolve func(S, domain.Event) (S, error), size int,
) *Repository[S] {
	return &Repository[S]{
		log: l, subject: subject, evolve: evolve, size: max(size, 1),
		warm: make(map[string]*list.Element), used: list.New(),
	}
}

// Get gives an aggregate with everything that was acknowledged before the call, and the sequence of
// its last event. One that does not exist is the zero state and 0. A fault that passes is a
// domain.Unavailable.
func (r *Repository[S]) Get(ctx context.Context, id string) (S, uint64, error) {
	state, seq := r.recall(id)
	last, err := r.log.Load(ctx, r.subject(id), seq, func(_ uint64, e domain.Event) (err error) {
		state, err = r.evolve(state, e)
		return err
	})
	if err != nil {
		var none S
		return none, 0, unread(err)
	}
	r.remember(id, state, last)
	return state, last, nil
}

// Update lets decide look at the aggregate as it is now and appends the events that it answers, if
// any. It gives the state with them and the sequence of the aggregate's last event, also when there
// was nothing to append. When another process was faster, decide is asked again about the new
// state, some times; then Update gives up with ErrConflict. decide's error is returned as it is,
// with the state it was about. A fault that passes, ErrConflict and streams.ErrUnsure among them,
// is a domain.Unavailable that says whether anything was changed.
func (r *Repository[S]) Update(
	ctx context.Context, id string, decide func(S) ([]domain.Event, error),
) (S, uint64, error) {
	defer r.turns.take(ctx, id)()
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
			return state, seq, unwritten(err)
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
	r.remember(id, state, last)
	return state, last, nil
}

func (r *Repository[S]) recall(id string) (state S, seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.warm[id]; ok {
		r.used.MoveToFront(element)
		known := element.Value.(warmState[S])
		return known.state, known.seq
	}
	return state, 0
}

// remember keeps a state unless a newer one is kept already. What does not exist is not kept: ids
// that are made up must not push out real ones.
func (r *Repository[S]) remember(id string, state S, seq uint64) {
	if seq == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.warm[id]; ok {
		if element.Value.(warmState[S]).seq < seq {
			element.Value = warmState[S]{id, state, seq}
		}
		return
	}
	r.warm[id] = r.used.PushFront(warmState[S]{id, state, seq})
	if r.used.Len() > r.size {
		oldest := r.used.Remove(r.used.Back()).(warmState[S])
		delete(r.warm, oldest.id)
	}
}
