package directory

import (
	"context"
	"sync"
	"time"
)

// lockTimeout bounds how long keyedMutex.lock waits.
const lockTimeout = 2 * time.Second

// keyedMutex makes updates of one key within this process run one after the other, so that they do
// not conflict at the broker again and again. No rule of an aggregate depends on it: lock gives up
// after lockTimeout, and the update goes ahead without the lock. Quotas that count depend on it,
// and may then be exceeded by one for each such update. The zero value is ready to use.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*keyLock
}

type keyLock struct {
	// held has one element while the key is locked.
	held chan struct{}
	// users counts the holder and those that wait.
	users int
}

// lock waits for the key's lock, at most lockTimeout or until ctx ends, and returns the function
// that releases it, which must be called in any case.
func (m *keyedMutex) lock(ctx context.Context, key string) (unlock func()) {
	m.mu.Lock()
	lock, ok := m.locks[key]
	if !ok {
		if m.locks == nil {
			m.locks = map[string]*keyLock{}
		}
		lock = &keyLock{held: make(chan struct{}, 1)}
		m.locks[key] = lock
	}
	lock.users++
	m.mu.Unlock()

	timeout := time.NewTimer(lockTimeout)
	defer timeout.Stop()
	locked := false
	select {
	case lock.held <- struct{}{}:
		locked = true
	case <-timeout.C:
	case <-ctx.Done(): // the update itself fails with ctx's error
	}
	return func() {
		if locked {
			<-lock.held
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if lock.users--; lock.users == 0 {
			delete(m.locks, key)
		}
	}
}
