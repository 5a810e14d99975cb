package journal

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

const unbounded = 1 << 30

func message(subject, data string) *nats.Msg {
	msg := nats.NewMsg(subject)
	msg.Data = []byte(data)
	return msg
}

func TestReader(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	j := open(t, conns, Config{CacheBytes: 1}) // nothing fits
	s := begin(t, j, NewIndex(0))
	const commits = 1500
	want := map[int]Record{} // by sequence, of hub A
	for n := range commits {
		hubs := []domain.HubID{hubA, hubB, hubA}
		if n%3 == 0 {
			hubs = hubs[1:2]
		}
		for _, r := range s.store(hubs...).Records {
			if r.Hub == hubA {
				want[int(r.Seq)] = r
			}
		}
	}
	r := j.NewReader(0)
	tip, _ := s.Tip(hubA)
	if tip.Seq != 2*commits*2/3 || len(want) != int(tip.Seq) {
		t.Fatalf("the tip is %+v, and there are %d records", tip, len(want))
	}
	read := func(from, to uint64, maxBytes int) []Record {
		t.Helper()
		records, err := r.Read(t.Context(), hubA, tip, from, to, maxBytes)
		if err != nil {
			t.Fatalf("Read from %d to %d: %v", from, to, err)
		}
		for i, got := range records {
			w := want[int(got.Seq)]
			if got.Hub != hubA || got.Seq != from+uint64(i) ||
				string(got.Payload) != string(w.Payload) || !got.Time.Equal(w.Time) ||
				got.OrgID != w.OrgID || got.OwnLog != w.OwnLog || got.Through != w.Through {
				t.Fatalf("record %d is %+v, want %+v", got.Seq, got, w)
			}
		}
		return records
	}

	// The whole log by pages.
	for next := uint64(1); next <= tip.Seq; {
		records := read(next, tip.Seq, unbounded)
		last := records[len(records)-1].Seq
		if len(records) != readRecords && last != tip.Seq {
			t.Fatalf("Read from %d: sequences up to %d", next, last)
		}
		next = last + 1
	}
	// A page at the other end of a chain of 1,000 commits takes some hundred reads, not 1,000.
	before := testutil.ToFloat64(j.metrics.reads)
	read(1, 256, unbounded)
	if n := testutil.ToFloat64(j.metrics.reads) - before; n > readRecords/2+blockLength+10 {
		t.Errorf("the first page took %v reads of commits", n)
	}
	for _, c := range []struct {
		from, to   uint64
		bytes      int
		wantLength int
	}{
		{5, 5, unbounded, 1},
		{5, 8, unbounded, 4},
		{5, 8, 0, 1},
		{5, 200, len(want[5].Payload) + len(want[6].Payload), 2},
		{tip.Seq, tip.Seq + 10, unbounded, 1},
	} {
		records := read(c.from, c.to, c.bytes)
		if len(records) != c.wantLength {
			t.Errorf("Read(%d, %d, %d bytes) returned %d records, want %d",
				c.from, c.to, c.bytes, len(records), c.wantLength)
		}
	}
	for _, from := range []uint64{0, tip.Seq + 1} {
		if _, err := r.Read(
			t.Context(), hubA, tip, from, tip.Seq+1, unbounded,
		); !errors.Is(err, ErrGone) {
			t.Errorf("Read from %d: %v, want ErrGone", from, err)
		}
	}
	if oldest, err := r.Oldest(t.Context(), hubA, tip, time.Time{}); err != nil || oldest != 1 {
		t.Errorf("Oldest = %d, %v, want 1", oldest, err)
	}
	for _, seq := range []uint64{1, 2, 8, tip.Seq / 2, tip.Seq - 1, tip.Seq} {
		since := want[int(seq)].Time
		oldest, err := r.Oldest(t.Context(), hubA, tip, since)
		if err != nil || oldest != seq {
			t.Errorf("Oldest since %v = %d, %v, want %d", since, oldest, err, seq)
		}
		oldest, err = r.Oldest(t.Context(), hubA, tip, since.Add(1))
		if seq < tip.Seq && (err != nil || oldest != seq+1) ||
			seq == tip.Seq && !errors.Is(err, ErrGone) {
			t.Errorf("Oldest since after %d of %d = %d, %v", seq, tip.Seq, oldest, err)
		}
	}

	testExpired(t, conns.Cloud, r, s)
}

// testExpired tries a reader after the older half of the commits has expired.
func testExpired(t *testing.T, nc *nats.Conn, r *Reader, s *source) {
	t.Helper()
	tip, _ := s.Tip(hubA)
	keep(t, nc, 700)
	oldest, err := r.Oldest(t.Context(), hubA, tip, time.Time{})
	if err != nil || oldest < tip.Seq/2 || oldest > tip.Seq*6/10 {
		t.Fatalf("Oldest = %d, %v, want about the middle of %d", oldest, err, tip.Seq)
	}
	records, err := r.Read(t.Context(), hubA, tip, oldest, tip.Seq, unbounded)
	if err != nil || records[0].Seq != oldest {
		t.Errorf("Read from the oldest record, %d: %v", oldest, err)
	}
	for _, from := range []uint64{oldest - 1, 1} {
		if _, err := r.Read(
			t.Context(), hubA, tip, from, tip.Seq, unbounded,
		); !errors.Is(err, ErrGone) {
			t.Errorf("Read from %d before the oldest: %v, want ErrGone", from, err)
		}
	}
	keep(t, nc, 1)
	s.store(hubB)
	if _, err := r.Oldest(t.Context(), hubA, tip, time.Time{}); err != nil && !errors.Is(err, ErrGone) {
		t.Errorf("Oldest without commits of the hub: %v, want ErrGone", err)
	}
}

// A hub whose log was longer before the journal knew it has records from there on only.
func TestChainBeginsLate(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	s := begin(t, j, NewIndex(0))
	records := s.records(hubA)
	records[0].Seq = 5000
	c, err := s.Commit(t.Context(), records, s.Tip)
	streamstest.Must(t, err)
	s.apply(c)
	s.store(hubA)
	r := j.NewReader(0)
	tip, _ := s.Tip(hubA)
	got, err := r.Read(t.Context(), hubA, tip, 5000, 6000, unbounded)
	if err != nil || len(got) != 2 {
		t.Errorf("Read = %+v, %v, want two records", got, err)
	}
	if _, err := r.Read(t.Context(), hubA, tip, 4999, 6000, unbounded); !errors.Is(err, ErrGone) {
		t.Errorf("Read before the first record: %v, want ErrGone", err)
	}
	if oldest, err := r.Oldest(t.Context(), hubA, tip, time.Time{}); err != nil || oldest != 5000 {
		t.Errorf("Oldest = %d, %v, want 5000", oldest, err)
	}
	if hits := testutil.ToFloat64(j.metrics.cacheHits); hits == 0 {
		t.Error("nothing was read from the cache")
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	c := newCache(limit)
	for seq := range uint64(200) {
		c.put(cacheKey{0, seq}, &Commit{Seq: seq}, 1000)
		if c.bytes > limit {
			t.Fatalf("%d bytes are cached, want at most %d", c.bytes, limit)
		}
		c.get(cacheKey{0, 0})
	}
	var kept []uint64
	for seq := range uint64(200) {
		if c.get(cacheKey{0, seq}) != nil {
			kept = append(kept, seq)
		}
	}
	if want := []uint64{0, 191, 192, 193, 194, 195, 196, 197, 198, 199}; !slices.Equal(kept, want) {
		t.Errorf("kept are %v, want %v", kept, want)
	}
}
