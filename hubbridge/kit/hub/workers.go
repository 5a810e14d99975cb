package hub

import "sync"

// workers runs goroutines and waits for them. The zero workers is ready for use.
type workers struct {
	mu     sync.Mutex
	ending bool
	group  sync.WaitGroup
}

// run calls f in a goroutine. It does nothing after wait has begun: a connection that is closing
// may still deliver a request then.
func (w *workers) run(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ending {
		w.group.Go(f)
	}
}

// wait waits for every goroutine.
func (w *workers) wait() {
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.group.Wait()
}
