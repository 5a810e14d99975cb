package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// measureFeed measures readers of an organization's feed of many quiet hubs.
func measureFeed(b *bench) {
	n := size(
		b, fanOutSize{hubs: 500, readers: 200, rate: 1, rounds: 4, during: 5 * time.Second, whole: true},
		fanOutSize{hubs: 5, readers: 4, rate: 10, rounds: 1, during: 200 * time.Millisecond, whole: true},
	)
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(n.hubs)
	s.each(hubs, func(h *hub) error { return h.emit(1, 1) })
	start, err := s.feedPosition()
	if err != nil {
		b.Fatal(err)
	}
	if err := hubs[0].emit(1, 1); err != nil {
		b.Fatal(err)
	}
	frame, err := s.feedFrames(start, 1)
	if err != nil {
		b.Fatal(err)
	}
	sends := make([]func() error, n.hubs)
	for i, h := range hubs {
		m := newEventsMessage(h, 1)
		sends[i] = func() error { return m.send(h) }
	}
	defer keep(b, hubs)()
	web := startBare(b, roleWeb, nothing{})
	topic, err := web.feeds(1, frame)
	if err != nil {
		b.Fatal(err)
	}
	ofFeed := func(int) (string, string) { return s.Service.HTTP, s.feedRequest("") }
	ofBare := func(int) (string, string) { return web.ready.HTTP, s.bareRequest(web, 0, "") }

	name := fmt.Sprintf("feed of %d hubs", n.hubs)
	cpu := row{Measure: name + ", CPU a delivery", Unit: "µs", Aim: atMost(1.5)}
	var total, latencies, bareLatencies []float64
	for round := range n.rounds {
		done := b.profile(s.process, name, 2*n.during, round == 0)
		quiet := pace(b, n, sends, s.process, nil)
		own := runFanOut(b, n, sends, s.process, quiet, ofFeed)
		done()
		done = b.profile(web.process, name+" limit", 2*n.during, round == 0)
		quiet = pace(b, n, topic, web.process, nil)
		limit := runFanOut(b, n, topic, web.process, quiet, ofBare)
		done()
		cpu.Values, cpu.Limits = append(cpu.Values, own.own/1e3), append(cpu.Limits, limit.own/1e3)
		total = append(total, own.total/1e3)
		latencies = append(latencies, median(own.latencies)/1e6)
		bareLatencies = append(bareLatencies, median(limit.latencies)/1e6)
	}
	cpu.Note = fmt.Sprintf(
		"%d readers of %d hubs × %d events/s; a difference: with what the events themselves cost "+
			"%.1f µs; latency p50 %s ms, of the bare server %s ms",
		n.readers, n.hubs, n.rate, median(total), figure(median(latencies)),
		figure(median(bareLatencies)),
	)
	b.report.add(cpu)
}

// feedRequest returns the bytes of a request for the organization's event stream.
func (s *service) feedRequest(lastEventID string) string {
	return streamRequest(s.get("/events/stream?positions=true"), lastEventID)
}

// bareRequest returns the bytes of a request for an event stream of the bare web server.
func (s *service) bareRequest(web *bare, topic int, lastEventID string) string {
	return streamRequest(fmt.Sprintf(
		"GET /stream/%d HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", topic,
		web.ready.HTTP, s.Tenant.Key,
	), lastEventID)
}

// feedPosition returns the position of the end of the organization's feed.
func (s *service) feedPosition() (string, error) {
	greeting, err := s.feedFrames("", 0)
	if err != nil {
		return "", err
	}
	id, ok := bytes.CutPrefix(bytes.TrimSpace(greeting), []byte("id: "))
	if !ok {
		return "", fmt.Errorf("feed: got %q, want a position", greeting)
	}
	return string(id), nil
}

// feedFrames returns the frames of the organization's feed after a position, as the service sends
// them, up to one with so many events of hubs. With 0 events it returns the first block, which is a
// position.
func (s *service) feedFrames(after string, events int) ([]byte, error) {
	request, err := http.NewRequestWithContext(
		s.t.Context(), http.MethodGet, s.Base()+"/events/stream?positions=true", nil,
	)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.Tenant.Key)
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	response, err := s.Tenant.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("feed: got status %d, want 200", response.StatusCode)
	}
	var frames, frame []byte
	blocks := bufio.NewReader(response.Body)
	for first := true; ; first = false {
		for frame = frame[:0]; !bytes.HasSuffix(frame, []byte("\n\n")); {
			line, err := blocks.ReadBytes('\n')
			if err != nil {
				return nil, fmt.Errorf("feed: %w", err)
			}
			frame = append(frame, line...)
		}
		if first && events == 0 {
			return frame, nil
		}
		if !bytes.Contains(frame, []byte("\nevent: ")) {
			continue // a position
		}
		frames = append(frames, frame...)
		if !bytes.Contains(frame, []byte("\nevent: hub.")) {
			if events--; events == 0 {
				return frames, nil
			}
		}
	}
}
