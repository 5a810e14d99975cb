package shares

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// shareEvery is the time between two reports of a replica's grants to the others. In between,
	// each replica grants on its own.
	shareEvery = 50 * time.Millisecond
	// maxShared bounds the clients in a message.
	maxShared = 1000
	// maxDebt bounds the debt of a bucket, in full buckets. Replicas that grant at the same time
	// can overdraw a bucket, and its client then waits until the debt is paid.
	maxDebt = 2
)

// Bus carries the grants of each replica to all others. Messages may be lost: the others then grant
// the same tokens again.
type Bus interface {
	Publish(message []byte) error
	// Subscribe calls fn for each message of the other replicas until stop is called.
	Subscribe(fn func(message []byte)) (stop func(), err error)
}

// ShareRate combines the rates of all replicas on a bus until ctx ends: each replica takes from its
// buckets what the others granted. It returns ctx's error, or an error if it cannot subscribe.
// While messages cannot be published, each replica counts on its own.
func ShareRate(ctx context.Context, l *Rate[string], bus Bus, now func() time.Time) error {
	l.recordGrants()
	stop, err := bus.Subscribe(func(message []byte) {
		granted, err := decode(message)
		if err != nil {
			return // the message of another version
		}
		for id, n := range granted {
			l.Charge(id, n, now())
		}
	})
	if err != nil {
		return fmt.Errorf("subscribe to the grants of other replicas: %w", err)
	}
	defer stop()
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			for _, message := range encode(l.takeGrants()) {
				_ = bus.Publish(message) // without the broker each replica counts on its own
			}
		}
	}
}

// Charge takes n tokens that another replica granted from id's bucket. The bucket may go into debt,
// down to maxDebt.
func (l *Rate[K]) Charge(id K, n int, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.advance(at)
	n = max(0, min(n, maxDebt*l.burst))
	l.current[id] = min(l.fullAt(id, now)+time.Duration(n)*l.interval, now+maxDebt*l.fill)
}

// recordGrants makes the limiter record its grants, for takeGrants.
func (l *Rate[K]) recordGrants() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = map[K]int{}
}

// takeGrants returns the grants since the last call.
func (l *Rate[K]) takeGrants() map[K]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.taken) == 0 {
		return nil
	}
	taken := l.taken
	l.taken = map[K]int{}
	return taken
}

// encode encodes grants as JSON objects of at most maxShared clients each.
func encode(granted map[string]int) [][]byte {
	var messages [][]byte
	part := map[string]int{}
	flush := func() {
		// Marshal of strings and numbers cannot fail.
		if message, err := json.Marshal(part); err == nil {
			messages = append(messages, message)
		}
		clear(part)
	}
	for id, n := range granted {
		if part[id] = n; len(part) == maxShared {
			flush()
		}
	}
	if len(part) > 0 {
		flush()
	}
	return messages
}

func decode(message []byte) (map[string]int, error) {
	var granted map[string]int
	if err := json.Unmarshal(message, &granted); err != nil {
		return nil, err
	}
	if len(granted) > maxShared {
		return nil, fmt.Errorf(
			"%d clients in one message: must be at most %d", len(granted), maxShared,
		)
	}
	return granted, nil
}
