package orgfeed

import (
	"fmt"
	"testing"

	"hubcloud/domain"
)

// BenchmarkCatchUp reads 10,000 events of 500 hubs with some readers at once, each from the same
// position. An operation is one event of one reader.
func BenchmarkCatchUp(b *testing.B) {
	const hubs, each = 500, 20
	f := start(b, Config{})
	for n := range hubs {
		f.add(hubN(n), "org", "site")
		f.append(hubN(n), "a.b", 1)
	}
	_, position := f.pages("org", everything, "", 500)
	for i := range hubs * each / 2 {
		f.append(hubN(i%hubs), "channel.observed", 2)
	}
	for _, count := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d readers", count), func(b *testing.B) {
			b.ReportAllocs()
			for done := 0; done < b.N; {
				f.dropRings()
				readers := make([]*Reader, count)
				for i := range readers {
					r, err := f.Follow(b.Context(), "org", everything, position)
					if err != nil {
						b.Fatal(err)
					}
					readers[i] = r
				}
				for reading := true; reading; {
					reading = false
					for _, r := range readers {
						events, err := r.Next(b.Context(), 100)
						if err != nil {
							b.Fatal(err)
						}
						reading = reading || len(events) > 0
						done += len(events)
					}
				}
				for _, r := range readers {
					r.Close()
				}
			}
		})
	}
}

// BenchmarkLive delivers events to 200 readers that each wait for the next one. An operation is one
// event of one reader.
func BenchmarkLive(b *testing.B) {
	const readers = 200
	f := start(b, Config{})
	f.add(hubN(1), "org", "site")
	all := make([]*Reader, readers)
	for i := range all {
		r, err := f.Follow(b.Context(), "org", domain.EventFilter{}, "")
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Next(b.Context(), 1); err != nil { // it joins the ring
			b.Fatal(err)
		}
		all[i] = r
	}
	f.append(hubN(1), "channel.observed", 1)
	for _, r := range all {
		<-r.Ready()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		for _, r := range all {
			number, times := r.number, append([]int64{}, r.times...)
			pos := append([]int64{}, r.pos.Times...)
			events, err := r.Next(b.Context(), 100)
			if err != nil || len(events) == 0 {
				b.Fatalf("got %d events, %v", len(events), err)
			}
			done += len(events)
			r.Ready()
			r.number, r.times, r.pos.Times = number, times, pos
		}
	}
}
