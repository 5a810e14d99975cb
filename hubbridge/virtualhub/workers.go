package virtualhub

import "sync"

// workers are goroutines that are waited for in the end. The zero workers are ready.
type workers struct {
	mu     sync.Mutex
	ending bool
	group  sync.WaitGroup
}

// run runs f on a goroutine of its own, unless the end has begun: a connection that is going down
// may still bring a request.
func (w *workers) run(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ending {
		w.group.Go(f)
	}
}

// wait lets nothing begin any more, and waits for what has.
func (w *workers) wait() {
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.group.Wait()
}
