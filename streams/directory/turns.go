package directory

import (
	"context"
	"sync"
	"time"
)

// turnWait bounds how long an update waits for its turn.
const turnWait = 2 * time.Second

// turns lets the updates that one process makes of one aggregate come one after the other, so that
// they do not conflict with each other again and again. It is a courtesy that no rule rests on: who
// has waited for turnWait goes ahead. The zero value is ready.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	// taken holds one element while somebody has the turn.
	taken chan struct{}
	// users counts those who have it or wait for it.
	users int
}

// take waits for the turn of an aggregate and gives what ends it.
func (t *turns) take(ctx context.Context, id string) (end func()) {
	t.mu.Lock()
	mine, ok := t.of[id]
	if !ok {
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		mine = &turn{taken: make(chan struct{}, 1)}
		t.of[id] = mine
	}
	mine.users++
	t.mu.Unlock()

	patience := time.NewTimer(turnWait)
	defer patience.Stop()
	has := false
	select {
	case mine.taken <- struct{}{}:
		has = true
	case <-patience.C:
	case <-ctx.Done(): // the update finds that out itself
	}
	return func() {
		if has {
			<-mine.taken
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(t.of, id)
		}
	}
}
