package fleet

import (
	"strings"
	"time"

	"hubcloud/hubbridge/kit/device"
	"hubcloud/hubbridge/kit/hub"
)

// maxEmissions bounds the unacknowledged emissions whose latency a member measures.
const maxEmissions = 4096

// emission is the time at which the events up to a number were emitted.
type emission struct {
	last uint64
	at   time.Time
}

// emit emits events and notes the time, for the latency of their ack.
func (m *member) emit(events []hub.Event) (last uint64, err error) {
	now := time.Now()
	last, err = m.engine.Commit(now, hub.Change{Events: events})
	if err != nil {
		return 0, err
	}
	m.fleet.emitted.Add(uint64(len(events)))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.emissions) < maxEmissions && last > m.acked {
		m.emissions = append(m.emissions, emission{last, now})
	}
	return last, nil
}

// emitBatch emits one batch of the configured load.
func (m *member) emitBatch() {
	events := make([]hub.Event, m.fleet.cfg.Batch)
	padding := strings.Repeat("x", m.fleet.cfg.Padding)
	for i := range events {
		o := device.Observation{Ref: device.Ref{Key: "power"}, Value: float64(i)}
		events[i] = hub.Event{Type: hub.EventObserved, DeviceID: 1, Data: o}
		if padding != "" {
			events[i].Data = paddedObservation{o, padding}
		}
	}
	if _, err := m.emit(events); err != nil {
		m.logger.Warn("load not emitted", "error", err)
	}
}

// paddedObservation is an observation of a configured size.
type paddedObservation struct {
	device.Observation
	Padding string `json:"padding"`
}

// emitLoad emits the batches that are due and returns when the next is due. unacked is the number
// of unacknowledged emissions.
func (m *member) emitLoad(now time.Time, unacked int) (due time.Time) {
	cfg := &m.fleet.cfg
	if cfg.Saturate {
		for range cfg.Depth - unacked {
			m.emitBatch()
		}
		return time.Time{}
	}
	if cfg.Rate == 0 {
		return time.Time{}
	}
	interval := time.Duration(float64(cfg.Batch) / cfg.Rate * float64(time.Second))
	if m.nextEmit.IsZero() {
		m.nextEmit = now.Add(randomPart(interval))
	}
	for !now.Before(m.nextEmit) {
		m.emitBatch()
		m.nextEmit = m.nextEmit.Add(interval)
		// A process that was suspended skips what it missed instead of flooding the cloud.
		if now.Sub(m.nextEmit) > time.Second {
			m.nextEmit = now.Add(interval)
		}
	}
	return m.nextEmit
}
