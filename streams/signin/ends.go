package signin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

const (
	// watchPause is the pause after a watch that could not be started.
	watchPause = 200 * time.Millisecond
	// checkInterval is how often the sessions with waiters are looked up, besides the watch.
	checkInterval = 5 * time.Second
	// checkTimeout bounds the lookup of one session.
	checkTimeout = 5 * time.Second
)

// waiters are the sessions with open channels of Ended, by their keys.
type waiters struct {
	mu        sync.Mutex
	bySession map[string]*waiter
}

// waiter waits for the end of one session.
type waiter struct {
	// ended is closed when the session ends; users counts the calls of Ended that share it.
	ended chan struct{}
	users int
}

// Ended returns a channel that is closed when the session ends: by End on any replica, when it
// expires, or when it is removed from the bucket. The caller must call forget in the end. The
// channel of a session that has ended before the call stays open: call Session afterwards.
func (s *Store) Ended(token string) (ended <-chan struct{}, forget func()) {
	name := key(kindSession, token)
	s.waiters.mu.Lock()
	defer s.waiters.mu.Unlock()
	w, ok := s.waiters.bySession[name]
	if !ok {
		w = &waiter{ended: make(chan struct{})}
		s.waiters.bySession[name] = w
	}
	w.users++
	return w.ended, sync.OnceFunc(func() {
		s.waiters.mu.Lock()
		defer s.waiters.mu.Unlock()
		if w.users--; w.users == 0 && s.waiters.bySession[name] == w {
			delete(s.waiters.bySession, name)
		}
	})
}

// end closes the channel of a session.
func (w *waiters) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waiting, ok := w.bySession[name]; ok {
		delete(w.bySession, name)
		close(waiting.ended)
	}
}

// sessions returns the keys of the sessions with waiters.
func (w *waiters) sessions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]string, 0, len(w.bySession))
	for name := range w.bySession {
		all = append(all, name)
	}
	return all
}

// Run closes the channels of Ended until ctx ends, and returns nil then.
//
// It watches the bucket. A watch reads one server's copy, which may be behind, or stop delivering
// without an error when that server is cut off: pages of a person who has signed out would stay
// open. So Run also asks the bucket's leader for every session with waiters, every five seconds and
// after each reconnect. A deposed leader may answer with a stale session; replicas.Freshness, which
// the portal checks, ends open pages on a replica that is cut off.
func (s *Store) Run(ctx context.Context) error {
	back := s.nc.StatusChanged(nats.CONNECTED)
	defer s.nc.RemoveStatusListener(back)
	for ctx.Err() == nil {
		if err := s.watch(ctx, back); err != nil && ctx.Err() == nil {
			s.logger.Warn("sessions not watched", "error", err)
			streams.Sleep(ctx, watchPause)
		}
	}
	return nil
}

// watch runs one watch. It returns nil when Run must start another watch at once, or ctx has ended.
func (s *Store) watch(ctx context.Context, back <-chan nats.Status) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The watch ends with its context. Its Stop method would wait for a broker that may be away.
	watch, err := s.kv.Watch(ctx, kindSession+">", jetstream.UpdatesOnly(), jetstream.MetaOnly())
	if err != nil {
		return err
	}
	if err := s.checkAll(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-back:
			return nil
		case <-ticker.C:
			if err := s.checkAll(ctx); err != nil {
				return err
			}
		case entry, ok := <-watch.Updates():
			switch {
			case !ok:
				return fmt.Errorf("the watch of bucket %s ended", s.kv.Bucket())
			case entry != nil && entry.Operation() != jetstream.KeyValuePut:
				s.waiters.end(entry.Key())
			}
		}
	}
}

// checkAll looks up every session with waiters.
func (s *Store) checkAll(ctx context.Context) error {
	for _, name := range s.waiters.sessions() {
		if err := s.check(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// check closes the channel of a session that does not exist any more.
func (s *Store) check(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	session, err := s.bucket.Get(ctx, name)
	if err == nil && !session.Exists() {
		s.waiters.end(name)
	}
	return err
}
