package virtualhub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
)

// member is a hub of a fleet. Its goroutine connects and reads; its pacer writes.
type member struct {
	fleet *Fleet
	pacer *pacer
	c     *controller

	// nextEmit, nextPing and sent are the pacer's alone.
	nextEmit, nextPing time.Time
	sent               uint64 // the highest number ever sent
	place              int    // in the pacer's heap
	due                time.Time

	mu         sync.Mutex
	wire       *wire // nil: no connection
	connection uint64
	greeted    bool
	marks      []mark // of emissions that are not acknowledged, oldest first
	acked      uint64
}

// mark is when the events up to a number were emitted.
type mark struct {
	last uint64
	at   time.Time
}

// maxMarks bounds the marks of a hub whose cloud does not acknowledge: what is emitted beyond has
// no latency.
const maxMarks = 4096

func newMember(f *Fleet, credentials Credentials, p *pacer) (*member, error) {
	cfg, id, err := Config{
		EnrollURL: f.cfg.EnrollURL, Serial: credentials.Serial, Secret: credentials.Secret,
		Devices: f.cfg.Devices, Joinable: []DeviceSpec{}, Quiet: true, Capacity: f.cfg.Capacity,
		Batch:      f.batch(),
		HTTPClient: f.cfg.HTTPClient, KeepAlive: f.cfg.KeepAlive, BackoffMin: f.cfg.BackoffMin,
		BackoffMax: f.cfg.BackoffMax, Log: f.cfg.Log,
	}.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := newController(cfg, id)
	if err != nil {
		return nil, err
	}
	m := &member{fleet: f, pacer: p, c: c, place: -1}
	c.wake = func() { p.kick(m) }
	return m, nil
}

// batch is the most events in a message of the fleet: what falls behind goes out in large ones,
// unless the batch is what is measured.
func (f *Fleet) batch() int {
	if f.cfg.Saturate {
		return f.cfg.Batch
	}
	return protocol.MaxMessageEvents
}

// run keeps the hub connected until ctx ends.
func (m *member) run(ctx context.Context) {
	wait := backoff{least: m.c.cfg.BackoffMin, most: m.c.cfg.BackoffMax}
	admission := admission{every: m.c.cfg.EnrollEvery}
	var i *identity
	for ctx.Err() == nil {
		if m.fleet.gate.Acquire(ctx, 1) != nil {
			return
		}
		var err error
		if i == nil {
			if i, err = enrol(ctx, m.c.cfg, m.c.id); err == nil {
				admission.enrolled(time.Now())
				m.fleet.enrolled.Add(1)
			}
		}
		var w *wire
		if err == nil {
			w, err = connectWire(ctx, i, m.c.cfg.KeepAlive)
		}
		m.fleet.gate.Release(1)
		retry := wait.next()
		if err == nil {
			admission.connected()
			wait.reset()
			retry = m.c.cfg.BackoffMin
			err = m.converse(ctx, w)
			m.fleet.disconnections.Add(1)
		}
		if refused := new(enrolError); errors.As(err, &refused) {
			retry = max(retry, refused.RetryAfter)
		}
		if refused := new(connectError); errors.As(err, &refused) && refused.stage != dialing &&
			admission.refused(refused.certain(), time.Now()) {
			i = nil
			m.fleet.enrolled.Add(-1)
		}
		if ctx.Err() == nil {
			m.c.log.Info("no connection", "error", err, "retry_in", retry)
			pause(ctx, nil, retry)
		}
	}
}

// converse reads from a connection until it ends.
func (m *member) converse(ctx context.Context, w *wire) error {
	stop := context.AfterFunc(ctx, func() { w.close(true) })
	defer stop()
	connection := m.c.connect()
	m.mu.Lock()
	m.wire, m.connection = w, connection
	m.mu.Unlock()
	m.pacer.kick(m)
	defer func() {
		m.c.disconnect()
		m.mu.Lock()
		if m.greeted {
			m.fleet.connected.Add(-1)
		}
		m.wire, m.greeted = nil, false
		m.mu.Unlock()
		w.close(false)
	}()
	for {
		suffix, payload, err := w.read(m.c.cfg.KeepAlive + m.c.cfg.KeepAlive/2)
		if err != nil {
			return err
		}
		now := time.Now()
		switch suffix {
		case "ack":
			if through, ok := m.c.ack(connection, payload, now); ok {
				m.acknowledged(through, now)
			}
		case "request":
			if req, err := decodeRequest(payload); err == nil {
				if err := w.publish("response/"+req.Token, mustJSON(m.c.answer(req, now))); err != nil {
					return err
				}
				m.fleet.requests.Add(1)
			}
		}
	}
}

// acknowledged counts an ack.
func (m *member) acknowledged(through uint64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.greeted {
		m.greeted = true
		m.fleet.connected.Add(1)
		m.fleet.ready.send()
	}
	if through <= m.acked {
		return
	}
	m.fleet.acked.Add(through - m.acked)
	m.acked = through
	done := 0
	for done < len(m.marks) && m.marks[done].last <= through {
		m.fleet.latency.add(now.Sub(m.marks[done].at))
		done++
	}
	m.marks = slices.Delete(m.marks, 0, done)
}

func (m *member) emit(events []Event) (last uint64, err error) {
	now := time.Now()
	last, err = m.c.emit(now, events)
	if err != nil {
		return 0, err
	}
	m.fleet.emitted.Add(uint64(len(events)))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.marks) < maxMarks && last > m.acked {
		m.marks = append(m.marks, mark{last, now})
	}
	return last, nil
}

// emitBatch emits what the fleet's load asks for.
func (m *member) emitBatch() {
	events := make([]Event, m.fleet.cfg.Batch)
	padding := strings.Repeat("x", m.fleet.cfg.Padding)
	for i := range events {
		o := device.Observation{Ref: ChannelRef{Key: "power"}, Value: float64(i)}
		events[i] = Event{Type: eventObserved, DeviceID: 1, Data: o}
		if padding != "" {
			events[i].Data = padded{o, padding}
		}
	}
	if _, err := m.emit(events); err != nil {
		m.c.log.Warn("nothing emitted", "error", err)
	}
}

// padded is an observation that is larger than it needs to be.
type padded struct {
	device.Observation
	Padding string `json:"padding"`
}

// drive does what is due at now, and returns when it wants to be driven again; zero: when it is
// kicked.
func (m *member) drive(now time.Time) (due time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	earlier(m.c.advance(now))
	m.mu.Lock()
	w, connection, greeted, behind := m.wire, m.connection, m.greeted, len(m.marks)
	m.mu.Unlock()
	if w == nil {
		m.nextEmit, m.nextPing = time.Time{}, time.Time{}
		return due
	}
	if greeted {
		earlier(m.load(now, behind))
	}
	for {
		message, wake := m.c.outgoing(connection, now)
		if message.suffix == "" {
			earlier(wake)
			break
		}
		if message.first <= m.sent && message.last > 0 {
			m.fleet.resent.Add(min(m.sent, message.last) - message.first + 1)
		}
		m.sent = max(m.sent, message.last)
		if w.publish(message.suffix, message.payload) != nil {
			w.close(false) // the reader notices
			return due
		}
	}
	// Well within the keep-alive: a broker that counts in whole seconds may wait no longer than
	// that.
	if ping := m.c.cfg.KeepAlive * 3 / 4; m.nextPing.IsZero() {
		m.nextPing = now.Add(ping)
	} else if !now.Before(m.nextPing) {
		m.nextPing = now.Add(ping)
		if w.ping() != nil {
			w.close(false)
		}
	}
	earlier(m.nextPing)
	return due
}

// load emits what is due, and says when more is.
func (m *member) load(now time.Time, behind int) (due time.Time) {
	cfg := &m.fleet.cfg
	if cfg.Saturate {
		for range cfg.Depth - behind {
			m.emitBatch()
		}
		return time.Time{}
	}
	if cfg.Rate == 0 {
		return time.Time{}
	}
	interval := time.Duration(float64(cfg.Batch) / cfg.Rate * float64(time.Second))
	if m.nextEmit.IsZero() {
		m.nextEmit = now.Add(m.pacer.spread(interval))
	}
	for !now.Before(m.nextEmit) {
		m.emitBatch()
		m.nextEmit = m.nextEmit.Add(interval)
		// a process that was stopped does not catch up with a flood
		if now.Sub(m.nextEmit) > time.Second {
			m.nextEmit = now.Add(interval)
		}
	}
	return m.nextEmit
}
