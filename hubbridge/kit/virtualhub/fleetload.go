package virtualhub

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"hubcloud/hubbridge/kit/hub"
)

// maxEmissions bounds the unacknowledged emissions whose latency a member measures.
const maxEmissions = 4096

// emission is the time at which the events up to a number were emitted.
type emission struct {
	last uint64
	at   time.Time
}

// member is a hub of a fleet with the emissions whose acks it awaits.
type member struct {
	*Hub
	fleet *Fleet
	wake  chan struct{} // has a capacity of one: an ack has arrived

	mu        sync.Mutex
	emissions []emission // in order
	acked     uint64
}

// countAck notes the latency of the emissions that an ack covers.
func (m *member) countAck(through uint64) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked = max(m.acked, through)
	done := 0
	for done < len(m.emissions) && m.emissions[done].last <= through {
		m.fleet.latency.add(now.Sub(m.emissions[done].at))
		done++
	}
	m.emissions = slices.Delete(m.emissions, 0, done)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// emitBatch emits one batch of the load and notes the time, for the latency of its ack.
func (m *member) emitBatch() {
	cfg := &m.fleet.cfg
	events := make([]hub.Event, cfg.Batch)
	for i := range events {
		events[i] = hub.Observed(1, "power", 0, float64(i))
	}
	now := time.Now()
	last, err := m.Emit(events...)
	if err != nil {
		cfg.Logger.Warn("load not emitted", "hub_id", m.ID(), "error", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.emissions) < maxEmissions && last > m.acked {
		m.emissions = append(m.emissions, emission{last, now})
	}
}

// saturate emits a batch whenever fewer than depth await their ack, until ctx ends.
func (m *member) saturate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake: // the first ack is for the hello
		}
		m.mu.Lock()
		unacked := len(m.emissions)
		m.mu.Unlock()
		for range depth - unacked {
			m.emitBatch()
		}
	}
}

// emitRate lets each connected hub emit at the configured rate until ctx ends, one after the other.
func (f *Fleet) emitRate(ctx context.Context) {
	interval := time.Duration(float64(f.cfg.Batch) / f.cfg.Rate * float64(time.Second))
	step := interval / time.Duration(len(f.members))
	due := time.Now().Add(rand.N(interval + 1))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		for _, m := range f.members {
			if wait := time.Until(due); wait > 0 {
				timer.Reset(wait)
				select {
				case <-ctx.Done():
					return
				case <-timer.C:
				}
			} else if ctx.Err() != nil {
				return
			}
			if m.Connected() {
				m.emitBatch()
			}
			// A process that was suspended skips what it missed instead of flooding the cloud.
			if due = due.Add(step); time.Since(due) > time.Second {
				due = time.Now()
			}
		}
	}
}
