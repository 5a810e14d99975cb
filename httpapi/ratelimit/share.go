package ratelimit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// shareEvery is how often a replica tells the others what it granted: for that long, and no
	// longer, each of them grants on its own.
	shareEvery = 50 * time.Millisecond
	// maxShared bounds the clients in one message.
	maxShared = 1000
	// maxDebt bounds what the others' word takes from a bucket, in full buckets: replicas that
	// grant at once can overdraw it, and whoever asks at all of them waits for what was granted too
	// much.
	maxDebt = 2
)

// Bus carries what each replica grants to all others, at most once: what is lost is granted again,
// at worst.
type Bus interface {
	Publish(message []byte) error
	// Subscribe calls fn with each message of the other replicas until stop is called.
	Subscribe(fn func(message []byte)) (stop func(), err error)
}

// Share makes the limiters of all replicas on a bus count as one, until ctx ends: each takes from
// its buckets what the others grant. It returns ctx's error, or the bus's when nothing can be heard
// from it. A bus that takes nothing for a while leaves each replica with its own count.
func Share(ctx context.Context, l *Limiter[string], bus Bus, now func() time.Time) error {
	l.count()
	stop, err := bus.Subscribe(func(message []byte) {
		granted, err := decode(message)
		if err != nil {
			return // nothing of ours: another version's message counts for nothing
		}
		for id, n := range granted {
			l.Charge(id, n, now())
		}
	})
	if err != nil {
		return fmt.Errorf("hear what other replicas grant: %w", err)
	}
	defer stop()
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			for _, message := range encode(l.granted()) {
				_ = bus.Publish(message) // a broker that is away: see above
			}
		}
	}
}

// Charge takes n tokens from id's bucket that another replica has granted. The bucket may be in
// debt afterwards, by one bucketful at most.
func (l *Limiter[K]) Charge(id K, n int, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.turn(at)
	n = max(0, min(n, maxDebt*l.burst))
	l.current[id] = min(l.fullAt(id, now)+time.Duration(n)*l.interval, now+maxDebt*l.fill)
}

// count makes the limiter keep what it grants, for granted.
func (l *Limiter[K]) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = map[K]int{}
}

// granted gives what was granted since it was asked last.
func (l *Limiter[K]) granted() map[K]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.taken) == 0 {
		return nil
	}
	taken := l.taken
	l.taken = map[K]int{}
	return taken
}

// encode writes what was granted as JSON objects, each of at most maxShared clients.
func encode(granted map[string]int) [][]byte {
	var messages [][]byte
	part := map[string]int{}
	flush := func() {
		// a map of texts and numbers always can be
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
			"%d clients in one message; %d are the most", len(granted), maxShared,
		)
	}
	return granted, nil
}
