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
	// watchPause is the pause before a watch that could not be begun is tried again.
	watchPause = 200 * time.Millisecond
	// lookEvery is how often the sessions that something hangs on are looked up, whatever the watch
	// has told.
	lookEvery = 5 * time.Second
	// lookLimit bounds how long it takes to look whether one session still stands.
	lookLimit = 5 * time.Second
)

// ends is which sessions something hangs on, by their keys.
type ends struct {
	mu   sync.Mutex
	open map[string]*end
}

// end is the end of one session that is waited for.
type end struct {
	// ended is closed when the session ends; users is how many wait for it.
	ended chan struct{}
	users int
}

// Ended gives what is closed when the session ends: by End, on whatever replica, when it expires,
// or when it is taken out of the bucket. forget must be called once nobody waits any more. A
// session that has ended before is found out only by Session, which is to be asked afterwards.
func (s *Store) Ended(token string) (ended <-chan struct{}, forget func()) {
	name := key(kindSession, token)
	s.ends.mu.Lock()
	defer s.ends.mu.Unlock()
	waiting, ok := s.ends.open[name]
	if !ok {
		waiting = &end{ended: make(chan struct{})}
		s.ends.open[name] = waiting
	}
	waiting.users++
	return waiting.ended, sync.OnceFunc(func() {
		s.ends.mu.Lock()
		defer s.ends.mu.Unlock()
		if waiting.users--; waiting.users == 0 && s.ends.open[name] == waiting {
			delete(s.ends.open, name)
		}
	})
}

// tell ends what hangs on a session.
func (e *ends) tell(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if waiting, ok := e.open[name]; ok {
		delete(e.open, name)
		close(waiting.ended)
	}
}

// waitedFor gives the keys of the sessions that something hangs on.
func (e *ends) waitedFor() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]string, 0, len(e.open))
	for name := range e.open {
		all = append(all, name)
	}
	return all
}

// Run hears of sessions that end until ctx does, and returns nil then. After the broker was away it
// looks after every session that something hangs on: nobody tells what ended meanwhile.
//
// A watch hangs on one server's copy of the bucket, which can be behind or cut off and stand still
// without a word: a page of somebody who has signed out would go on. So every five seconds the
// bucket's leader is asked for each of those sessions. What a deposed leader says of them is stale
// for as long as the portal's own check is (streams.Freshness), which ends what is open on a
// replica that is cut off.
func (s *Store) Run(ctx context.Context) error {
	back := s.nc.StatusChanged(nats.CONNECTED)
	defer s.nc.RemoveStatusListener(back)
	for ctx.Err() == nil {
		if err := s.listen(ctx, back); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot hear of sessions that end; trying again", "error", err)
			select {
			case <-time.After(watchPause):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

// listen is one watch: nil when it should begin again.
func (s *Store) listen(ctx context.Context, back <-chan nats.Status) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The watch ends with its context. Its own Stop would wait for a broker that may be away.
	watch, err := s.kv.Watch(ctx, kindSession+">", jetstream.UpdatesOnly(), jetstream.MetaOnly())
	if err != nil {
		return err
	}
	if err := s.lookAll(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-back:
			return nil
		case <-ticker.C:
			if err := s.lookAll(ctx); err != nil {
				return err
			}
		case entry, ok := <-watch.Updates():
			switch {
			case !ok:
				return fmt.Errorf("the watch of bucket %s ended", s.kv.Bucket())
			case entry != nil && entry.Operation() != jetstream.KeyValuePut:
				s.ends.tell(entry.Key())
			}
		}
	}
}

// lookAll looks after every session that something hangs on.
func (s *Store) lookAll(ctx context.Context) error {
	for _, name := range s.ends.waitedFor() {
		if err := s.look(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// look ends what hangs on a session that there is not any more.
func (s *Store) look(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_, revision, err := streams.Newest(ctx, s.nc, s.kv.Bucket(), name)
	if err == nil && revision == 0 {
		s.ends.tell(name)
	}
	return err
}
