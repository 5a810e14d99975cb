package bench

import (
	"fmt"
	"time"
)

// resumeSize is the number of readers that reconnect at once.
type resumeSize struct {
	hubs, readers int // readers of all hubs
	behind        int // missed events of each
	rounds        int
}

// measureResume measures the time until all readers have caught up.
func measureResume(b *bench) {
	one := size(b, resumeSize{1, 1000, 100, 5}, resumeSize{1, 10, 20, 1})
	many := size(b, resumeSize{100, 1000, 100, 5}, resumeSize{4, 8, 20, 1})
	s := startService(b, "--log-level", "warn")
	hubs := s.hubs(many.hubs)
	web := startBare(b, roleWeb, nothing{})
	for _, n := range []resumeSize{one, many} {
		s.measureResume(b, web, hubs[:n.hubs], n)
	}
	for _, h := range hubs {
		h.disconnect()
	}
}

func (s *service) measureResume(b *bench, web *bare, hubs []*hub, n resumeSize) {
	r := row{
		Measure: fmt.Sprintf("resume, %d readers of %d hubs", n.readers, n.hubs),
		Unit:    "ms",
		Aim:     atMost(2),
	}
	for round := range n.rounds {
		// No reader is connected while the events are sent.
		cursors := s.positions(hubs)
		const message = 20
		s.each(hubs, func(h *hub) error { return h.emit(n.behind/message, message) })
		if round == 0 {
			frames, err := s.frames(hubs[0], n.behind)
			if err != nil {
				b.Fatal(err)
			}
			web.do("/backlog", frames, nil)
		}
		b.rest()

		done := b.profile(s.process, r.Measure, time.Second, round == 0)
		r.Values = append(r.Values, resumeAll(b, n, func(i int) (string, string) {
			return s.Service.HTTP, s.streamRequest(hubs[i%len(hubs)], cursors[i%len(hubs)])
		}))
		done()
		b.rest()
		done = b.profile(web.process, r.Measure+" limit", time.Second, round == 0)
		r.Limits = append(r.Limits, resumeAll(b, n, func(i int) (string, string) {
			return web.ready.HTTP, fmt.Sprintf(
				"GET /stream/%d HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nLast-Event-ID: %s\r\n\r\n",
				i%len(hubs), web.ready.HTTP, s.Tenant.Key, cursors[i%len(hubs)],
			)
		}))
		done()
	}
	r.Note = fmt.Sprintf(
		"each %d events behind, from the first connection to the last event", n.behind,
	)
	b.report.add(r)
}

// positions returns the cursor of the end of each hub's log, from the first block of a stream.
func (s *service) positions(hubs []*hub) []string {
	s.t.Helper()
	reading := newReaders(s.t)
	defer reading.closeStreams()
	opened := make([]*eventStream, len(hubs))
	var err error
	for i, h := range hubs {
		if opened[i], err = reading.open(s.Service.HTTP, s.streamRequest(h, ""), true); err != nil {
			s.t.Fatal(err)
		}
	}
	reading.awaitGreeted(len(hubs))
	reading.mu.Lock()
	defer reading.mu.Unlock()
	cursors := make([]string, len(hubs))
	for i, stream := range opened {
		cursors[i] = stream.lastID
	}
	return cursors
}

// resumeAll opens all streams as fast as possible and returns the milliseconds until each has
// received the events that it missed.
func resumeAll(b *bench, n resumeSize, of func(i int) (address, request string)) float64 {
	reading := newReaders(b)
	defer reading.closeStreams()
	return catchUp(b, reading, n, of)
}

// catchUp is resumeAll with readers that the caller closes.
func catchUp(
	b *bench, reading *readers, n resumeSize, of func(i int) (address, request string),
) float64 {
	b.Helper()
	finished := reading.expect(n.readers, n.behind)
	began := time.Now()
	for i := range n.readers {
		address, request := of(i)
		if _, err := reading.open(address, request, false); err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-finished:
	case <-time.After(time.Minute):
		b.Fatal("readers have not caught up after a minute")
	}
	return float64(time.Since(began)) / 1e6
}
