package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/kit/device"
	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/hub/brokerconn"
	"hubcloud/hubbridge/kit/hub/enrolment"
	"hubcloud/hubbridge/kit/virtualhub/controller"
)

// member is a hub of a fleet. The goroutine of run connects and reads; the pacer writes.
type member struct {
	fleet      *Fleet
	pacer      *pacer
	logger     *slog.Logger
	id         domain.HubID
	secret     string
	engine     *hub.Engine
	controller *controller.Controller

	// Only the pacer uses these.
	nextEmit, nextPing time.Time
	sent               uint64    // the highest number ever sent
	due                time.Time // when the pacer drives the member next
	heapIndex          int       // in the pacer's schedule; -1 if not in it

	mu         sync.Mutex
	conn       *mqttConn // nil while not connected
	connection uint64
	helloAcked bool
	emissions  []emission // not acknowledged, in order
	acked      uint64
}

func newMember(f *Fleet, credentials Credentials, p *pacer) (*member, error) {
	id, ok := domain.ParseSerial(credentials.Serial)
	if !ok {
		return nil, fmt.Errorf("serial: %q must be a serial, such as HUB-7K2M-Q4XD-93TA", credentials.Serial)
	}
	if credentials.Secret == "" {
		return nil, errors.New("secret: must not be empty")
	}
	m := &member{
		fleet: f, pacer: p, logger: f.cfg.Logger.With("hub_id", string(id)),
		id: id, secret: credentials.Secret, heapIndex: -1,
	}
	wake := func() { p.wake(m) }
	var err error
	m.engine, err = hub.NewEngine(hub.EngineConfig{
		ID: id, Capacity: f.cfg.Capacity, Batch: f.cfg.messageBatch(),
		Network: controller.Network(id), Logger: m.logger,
	}, wake)
	if err != nil {
		return nil, err
	}
	m.controller, err = controller.New(controller.Config{
		HubID: id, Devices: f.cfg.Devices, Joinable: []device.Spec{}, Quiet: true, Logger: m.logger,
	}, m.engine, wake)
	return m, err
}

// run keeps the hub connected until ctx ends.
func (m *member) run(ctx context.Context) {
	cfg := &m.fleet.cfg
	backoff := brokerconn.Backoff{Min: cfg.BackoffMin, Max: cfg.BackoffMax}
	schedule := enrolment.Schedule{Interval: cfg.EnrollEvery}
	var identity *enrolment.Identity
	for ctx.Err() == nil {
		conn, err := m.connect(ctx, &identity, &schedule)
		retryIn := backoff.Next()
		if err == nil {
			schedule.Connected()
			backoff.Reset()
			retryIn = cfg.BackoffMin
			err = m.serve(ctx, conn)
			m.fleet.disconnections.Add(1)
		}
		if rejected := new(enrolment.Error); errors.As(err, &rejected) {
			retryIn = max(retryIn, rejected.RetryAfter)
		}
		if failed := new(brokerconn.Error); errors.As(err, &failed) &&
			failed.Stage != brokerconn.StageDial && needsEnrolment(&schedule, failed) {
			identity = nil
			m.fleet.enrolled.Add(-1)
		}
		if ctx.Err() == nil {
			m.logger.Info("not connected", "error", err, "retry_in", retryIn)
			pause(ctx, retryIn)
		}
	}
}

// needsEnrolment reports whether to enrol again after a connection that was not established.
func needsEnrolment(schedule *enrolment.Schedule, failed *brokerconn.Error) bool {
	if failed.Untrusted() {
		return schedule.Untrusted(time.Now())
	}
	return schedule.Rejected(failed.NeedsCertificate(), time.Now())
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// connect waits for a connect slot, enrols if *identity is nil, and connects.
func (m *member) connect(
	ctx context.Context, identity **enrolment.Identity, schedule *enrolment.Schedule,
) (*mqttConn, error) {
	if err := m.fleet.connectSlots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer m.fleet.connectSlots.Release(1)
	if *identity == nil {
		enrolled, err := enrolment.Request(ctx, enrolment.Config{
			URL: m.fleet.cfg.EnrollURL, HubID: m.id, Secret: m.secret,
			Client: m.fleet.cfg.HTTPClient,
		})
		if err != nil {
			return nil, err
		}
		*identity = enrolled
		schedule.Enrolled(time.Now(), nil)
		m.fleet.enrolled.Add(1)
	}
	return connectMQTT(ctx, *identity, m.fleet.cfg.KeepAlive)
}

// serve handles the messages from the broker until the connection ends.
func (m *member) serve(ctx context.Context, conn *mqttConn) error {
	stop := context.AfterFunc(ctx, func() { conn.close(true) })
	defer stop()
	connection := m.engine.Connect()
	m.mu.Lock()
	m.conn, m.connection = conn, connection
	m.mu.Unlock()
	m.pacer.wake(m)
	defer func() {
		m.engine.Disconnect()
		m.mu.Lock()
		if m.helloAcked {
			m.fleet.connected.Add(-1)
		}
		m.conn, m.helloAcked = nil, false
		m.mu.Unlock()
		conn.close(false)
	}()
	keepAlive := m.fleet.cfg.KeepAlive
	for {
		suffix, payload, err := conn.read(keepAlive + keepAlive/2)
		if err != nil {
			return err
		}
		now := time.Now()
		switch suffix {
		case "ack":
			if through, ok := m.engine.HandleAck(connection, payload, now); ok {
				m.countAck(through, now)
			}
		case "request":
			if err := m.answer(ctx, conn, payload, now); err != nil {
				return err
			}
		}
	}
}

// answer answers a request. It ignores requests that cannot be answered.
func (m *member) answer(
	ctx context.Context, conn *mqttConn, payload []byte, now time.Time,
) error {
	req, err := hub.DecodeRequest(payload)
	if err != nil {
		return nil
	}
	response, err := json.Marshal(m.engine.HandleRequest(ctx, m.controller, req, now))
	if err != nil {
		return err
	}
	if err := conn.publish("response/"+req.Token, response); err != nil {
		return err
	}
	m.fleet.requests.Add(1)
	return nil
}

// countAck counts acknowledged events and their latency.
func (m *member) countAck(through uint64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.helloAcked {
		m.helloAcked = true
		m.fleet.connected.Add(1)
		m.fleet.hubConnected.Send()
	}
	if through <= m.acked {
		return
	}
	m.fleet.acked.Add(through - m.acked)
	m.acked = through
	done := 0
	for done < len(m.emissions) && m.emissions[done].last <= through {
		m.fleet.latency.add(now.Sub(m.emissions[done].at))
		done++
	}
	m.emissions = slices.Delete(m.emissions, 0, done)
}

// drive advances the hub, emits the load that is due, and sends what there is to send. It returns
// when to drive the member next; zero means not before the next wake.
func (m *member) drive(now time.Time) (due time.Time) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	earlier(m.controller.Advance(now))
	m.mu.Lock()
	conn, connection := m.conn, m.connection
	helloAcked, unacked := m.helloAcked, len(m.emissions)
	m.mu.Unlock()
	if conn == nil {
		m.nextEmit, m.nextPing = time.Time{}, time.Time{}
		return due
	}
	if helloAcked {
		earlier(m.emitLoad(now, unacked))
	}
	for {
		message, wake := m.engine.NextMessage(connection, now)
		if message.Suffix == "" {
			earlier(wake)
			break
		}
		if message.First <= m.sent && message.Last > 0 {
			m.fleet.resent.Add(min(m.sent, message.Last) - message.First + 1)
		}
		m.sent = max(m.sent, message.Last)
		if conn.publish(message.Suffix, message.Payload) != nil {
			conn.close(false) // ends serve
			return due
		}
	}
	// A broker that counts in whole seconds may wait no longer than the keep-alive: ping well
	// before.
	if ping := m.fleet.cfg.KeepAlive * 3 / 4; m.nextPing.IsZero() {
		m.nextPing = now.Add(ping)
	} else if !now.Before(m.nextPing) {
		m.nextPing = now.Add(ping)
		if conn.ping() != nil {
			conn.close(false)
		}
	}
	earlier(m.nextPing)
	return due
}
