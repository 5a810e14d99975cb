package ingest

import (
	"hubcloud/hubbridge/codec"
	"hubcloud/streams/journal"
)

// storePlan describes how messages of one log are stored and acknowledged.
type storePlan struct {
	records []journal.Record
	// acks holds for each message the number through which it is acknowledged.
	acks []uint64
	// forgotten holds the devices of the device.forgotten events among records.
	forgotten []int64

	// repeats counts events that are stored already; beyond, messages that begin after the next
	// number; flaws, events that cannot be stored.
	repeats, beyond int
	flaws           map[codec.Flaw]int
	// flawed is the number of the last event with a flaw, and lastFlaw its flaw; from the first
	// number of the last message that began after the next number, and last the number of the last
	// event.
	flawed, from, last uint64
	lastFlaw           codec.Flaw
}

// planStore plans the records of the new events and the acks of all messages. It leaves out events
// that are stored already, and messages that begin after the next number.
func (s *hubState) planStore(batches []codec.Batch) storePlan {
	p := storePlan{acks: make([]uint64, 0, len(batches))}
	through := s.log.through
	for i := range batches {
		batch := &batches[i]
		if batch.First > through+1 {
			p.beyond++
			p.from = batch.First
			p.acks = append(p.acks, through)
			continue
		}
		known := min(through+1-batch.First, uint64(len(batch.Events)))
		p.repeats += int(known)
		for _, e := range batch.Events[known:] {
			through++
			if e.Flaw == "" {
				p.records = append(p.records, s.deviceRecord(e.Payload, through))
				if e.Forgotten != nil {
					p.forgotten = append(p.forgotten, *e.Forgotten)
				}
				continue
			}
			p.records = append(p.records, s.skipRecord(through, through, e.Flaw))
			if p.flaws == nil {
				p.flaws = make(map[codec.Flaw]int)
			}
			p.flaws[e.Flaw]++
			p.flawed = through
			p.lastFlaw = e.Flaw
		}
		p.acks = append(p.acks, through)
	}
	p.last = batches[len(batches)-1].Last()
	return p
}

// count adds the plan's events to the metrics and to the hub's stats, once the plan is carried out.
func (p *storePlan) count(m *Metrics, stats *connectionStats) {
	flawed := 0
	for flaw, n := range p.flaws {
		m.flawed.WithLabelValues(string(flaw)).Add(float64(n))
		flawed += n
	}
	m.gapMalformed.Add(float64(flawed))
	m.stored.Add(float64(len(p.records) - flawed))
	m.repeats.Add(float64(p.repeats))
	m.beyond.Add(float64(p.beyond))
	stats.malformed += flawed
	stats.stored += len(p.records) - flawed
	stats.repeats += p.repeats
}
