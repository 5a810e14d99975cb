package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// statesSize is the load of the measurement: messages of some events.
type statesSize struct {
	hubs, events int // hubs, and events in a message
	// rate is the messages per second and hub.
	rate   int
	rounds int
	during time.Duration
}

func (n statesSize) load() fanOutSize {
	return fanOutSize{hubs: n.hubs, rate: n.rate, during: n.during}
}

// stateDevices is the number of devices of a hub, each with one channel. It is that of the devices
// in an eventsMessage.
const stateDevices = 9

// measureStates measures how far last reported states are behind the hubs' reports, and how much
// their projection delays acks: the limit is the same service and the same load while the
// projection is stopped.
func measureStates(b *bench) {
	n := size(
		b, statesSize{2000, 10, 1, 3, 8 * time.Second},
		statesSize{3, 10, 2, 1, 500 * time.Millisecond},
	)
	s := startService(b, "--log-level", "warn")
	hubs := s.senders(n.hubs)
	acks := &ackTimes{}
	sends := make([]func() error, n.hubs)
	sent := make([]atomic.Int64, n.hubs)
	for i, h := range hubs.hubs {
		m := newEventsMessage(h, n.events)
		h.acked = func() { acks.add(time.Now().UnixNano() - sent[i].Load()) }
		h.answer = h.answerDevices
		sends[i] = func() error { sent[i].Store(time.Now().UnixNano()); return m.send(h) }
	}
	s.each(hubs.hubs, hubs.connect)
	defer keep(b, hubs.hubs)()
	s.awaitMetric(b, "hubcloud_statelog_reads_total", float64(n.hubs), "outcome", "stored")

	name := fmt.Sprintf("states of %d hubs", n.hubs)
	p50 := row{Measure: name + ", ack p50", Unit: "ms", Aim: atMost(1.1)}
	p99 := row{Measure: name + ", ack p99", Unit: "ms", Aim: atMost(1.1)}
	cpu := row{Measure: name + ", CPU an event", Unit: "µs", Aim: atMost(1.5)}
	rate := row{Measure: name + ", stored", Unit: "events/s"}
	behind := row{Measure: name + ", behind", Unit: "s"}
	for round := range n.rounds {
		if round > 0 {
			s.resumeStates(b)
			// what was sent while it was stopped
			last := n.hubs - 1
			harness.Must(b, s.awaitState(hubs.hubs[last], time.Unix(0, sent[last].Load())))
		}
		done := b.profile(s.process, name, n.during, round == 0)
		probe := s.startStateProbe(hubs.hubs, sent)
		own := s.statesLoad(b, n, sends, acks)
		// What was sent last must become readable too.
		behind.Values = append(behind.Values, probe.stop(b).Seconds())
		done()
		s.stopStates(b)
		done = b.profile(s.process, name+" limit", n.during, round == 0)
		limit := s.statesLoad(b, n, sends, acks)
		done()
		p50.Values = append(p50.Values, median(own.latencies)/1e6)
		p50.Limits = append(p50.Limits, median(limit.latencies)/1e6)
		p99.Values = append(p99.Values, percentile(own.latencies, 0.99)/1e6)
		p99.Limits = append(p99.Limits, percentile(limit.latencies, 0.99)/1e6)
		cpu.Values, cpu.Limits = append(cpu.Values, own.cpu/1e3), append(cpu.Limits, limit.cpu/1e3)
		rate.Values = append(rate.Values, own.rate)
	}
	p50.Note = fmt.Sprintf(
		"%d messages a second and hub with %d events each of %d channels; the limit is the same "+
			"while the projection of states is stopped",
		n.rate, n.events, stateDevices,
	)
	behind = behind.against(3, atMost(1))
	behind.Note = "the longest time from a hub's report until GET /v1/state has it"
	b.report.add(
		behind, rate.against(float64(n.hubs*n.events*n.rate), atLeast(0.99)), p50, p99, cpu,
	)
}

// statesLoad makes the hubs send for a round, and waits for the acks of all messages.
func (s *service) statesLoad(
	b *bench, n statesSize, sends []func() error, acks *ackTimes,
) (l load) {
	b.Helper()
	b.rest()
	acks.drain()
	before, began := s.cpu(b), time.Now()
	pace(b, n.load(), sends, s.process, nil)
	messages := n.load().events()
	streamstest.EventuallyNil(b, "every message is acknowledged", func() error {
		l.latencies = append(l.latencies, acks.drain()...)
		if len(l.latencies) < messages {
			return fmt.Errorf("got %d acks, want %d", len(l.latencies), messages)
		}
		return nil
	})
	events := float64(messages * n.events)
	l.cpu = float64(s.cpu(b)-before) / events
	l.rate = events / max(time.Since(began), n.during).Seconds()
	return l
}

// stateProbe follows the last reported states of single hubs.
type stateProbe struct {
	stopping chan struct{}
	ended    sync.WaitGroup
	longest  time.Duration
	err      error
}

// startStateProbe picks one hub after the other, and waits until GET /v1/state has what the hub has
// sent last. sent has the time of each hub's last message, in nanoseconds.
func (s *service) startStateProbe(hubs []*hub, sent []atomic.Int64) *stateProbe {
	p := &stateProbe{stopping: make(chan struct{})}
	p.ended.Go(func() {
		for last := false; !last && p.err == nil; {
			select {
			case <-p.stopping:
				last = true
			default:
			}
			i := rand.IntN(len(hubs))
			at := time.Unix(0, sent[i].Load())
			if at.UnixNano() == 0 {
				harness.Elapse(time.Millisecond)
				continue
			}
			p.err = s.awaitState(hubs[i], at)
			p.longest = max(p.longest, time.Since(at))
		}
	})
	return p
}

// stop waits until the probe has ended, and returns the longest time until a report was readable.
func (p *stateProbe) stop(b *bench) time.Duration {
	b.Helper()
	close(p.stopping)
	p.ended.Wait()
	if p.err != nil {
		b.Fatal(p.err)
	}
	return p.longest
}

// awaitState waits until the last reported state of a hub's first device is from a time or later.
func (s *service) awaitState(h *hub, at time.Time) error {
	const path = "/state?key=temperature&limit=1&hub_id="
	for deadline := time.Now().Add(30 * time.Second); ; harness.Elapse(20 * time.Millisecond) {
		answer, err := s.Do(http.MethodGet, path+h.ID, nil)
		if err != nil {
			return err
		}
		var page struct {
			Data []struct{ Channel struct{ Value *int64 } }
		}
		if answer.Status == http.StatusOK {
			if err := json.Unmarshal(answer.Body, &page); err != nil || len(page.Data) != 1 {
				return fmt.Errorf("state of %s: %s: %w", h.ID, answer.Body, err)
			}
			if value := page.Data[0].Channel.Value; value != nil && *value >= at.UnixMicro() {
				return nil
			}
		} // otherwise the read models are being built
		if time.Now().After(deadline) {
			return fmt.Errorf("state of %s: got %s, want a report from %v", h.ID, answer.Body, at)
		}
	}
}

// awaitMetric waits until a metric has a value.
func (s *service) awaitMetric(b *bench, name string, want float64, labels ...string) {
	b.Helper()
	streamstest.EventuallyNil(b, name, func() error {
		if got := s.Metrics().Value(b, name, labels...); got != want {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// stopStates stops the projection of last reported states.
func (s *service) stopStates(b *bench) {
	b.Helper()
	s.CLI("projections", "stop", "devices")
	s.awaitMetric(b, "hubcloud_projections_stopped_by_operator", 1, "projection", "devices")
}

// resumeStates resumes the projection of last reported states.
func (s *service) resumeStates(b *bench) {
	b.Helper()
	s.CLI("projections", "resume", "devices")
	s.awaitMetric(b, "hubcloud_projections_stopped_by_operator", 0, "projection", "devices")
}

// answerDevices answers what a hub is asked for its devices.
func (h *hub) answerDevices(request []byte) ([]byte, error) {
	var asked struct {
		ID, Token, Method string
		Params            struct {
			DeviceID int `json:"device_id"`
		}
	}
	if err := json.Unmarshal(request, &asked); err != nil {
		return nil, err
	}
	device := func(id int, state string) string {
		return fmt.Sprintf(
			`{"id":%d,"name":"Sensor %d","manufacturer":"Acme","model":"T1","channels":[{"key":"temperature",`+
				`"endpoint":0,"kind":"float","unit":"°C","readable":true,"writable":false,"capabilities":{},"available":true%s}]}`,
			id, id, state,
		)
	}
	var result string
	switch asked.Method {
	case "devices.list":
		var all []string
		for id := range stateDevices {
			all = append(all, device(id+1, ""))
		}
		result = `{"devices":[` + strings.Join(all, ",") + `]}`
	default:
		result = `{"device":` + device(
			asked.Params.DeviceID, `,"value":1,"observed_at":"2026-01-01T00:00:00Z","desired":null,`+
				`"desired_at":null,"status":"synchronized"`,
		) + `}`
	}
	return mqttPublish(
		"hub/"+h.ID+"/response/"+asked.Token,
		fmt.Appendf(nil, `{"id":%q,"result":%s}`, asked.ID, result),
	), nil
}
