package bench

import (
	"fmt"
	"time"
)

// feedResumeSize is the number of readers of a feed that reconnect at once.
type feedResumeSize struct {
	hubs, readers int
	each          int // missed events of each hub
	rounds        int
}

// measureFeedResume measures the time until all readers of an organization's feed have caught up,
// once after a restart of the service, with nothing in its memory, and then again.
func measureFeedResume(b *bench) {
	n := size(b, feedResumeSize{500, 100, 20, 3}, feedResumeSize{4, 5, 4, 1})
	s := startService(b, "--log-level", "warn")
	hubs := s.senders(n.hubs)
	web := startBare(b, roleWeb, nothing{})

	behind := resumeSize{1, n.readers, n.hubs * n.each, n.rounds}
	name := fmt.Sprintf("resume, %d readers of a feed", n.readers)
	rows := [2]row{
		{Measure: name, Unit: "ms", Aim: atMost(3)},
		{Measure: name + ", again", Unit: "ms", Aim: atMost(3)},
	}
	var used, bareUsed []float64
	for round := range n.rounds {
		after := s.missEvents(&hubs, n.each)
		if round == 0 {
			frames, err := s.feedFrames(after, behind.behind)
			if err != nil {
				b.Fatal(err)
			}
			web.do("/backlog", frames, nil)
		}
		s.restart()
		hubs.process = s.process
		b.rest()
		own := func(int) (string, string) { return s.Service.HTTP, s.feedRequest(after) }
		limit := func(int) (string, string) { return web.ready.HTTP, s.bareRequest(web, 0, after) }
		for i := range rows {
			r := &rows[i]
			done := b.profile(s.process, r.Measure, 2*time.Second, round == 0)
			before := s.cpu(b)
			r.Values = append(r.Values, resumeAll(b, behind, own))
			used = append(used, float64(s.cpu(b)-before)/1e6)
			done()
			b.rest()
			done = b.profile(web.process, r.Measure+" limit", time.Second, round == 0)
			before = web.cpu(b)
			r.Limits = append(r.Limits, resumeAll(b, behind, limit))
			bareUsed = append(bareUsed, float64(web.cpu(b)-before)/1e6)
			done()
			b.rest()
		}
	}
	rows[0].Note = fmt.Sprintf(
		"each %d events of %d hubs behind, after a restart of the service; \"again\" once more from "+
			"the same position; the service used %s ms of CPU, the bare server %s ms",
		behind.behind, n.hubs, figure(median(used)), figure(median(bareUsed)),
	)
	b.report.add(rows[:]...)
}

// missEvents makes hubs send events while no reader is connected, in turn, and returns the position
// of the feed before them.
func (s *service) missEvents(from *senders, each int) (after string) {
	s.t.Helper()
	s.each(from.hubs, from.connect)
	after, err := s.feedPosition()
	if err != nil {
		s.t.Fatal(err)
	}
	const message = 2
	for range each / message {
		s.each(from.hubs, func(h *hub) error { return h.emit(1, message) })
	}
	s.each(from.hubs, func(h *hub) error { h.disconnect(); return nil })
	return after
}
