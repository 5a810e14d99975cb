package journal

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func TestIndexApplies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex(0)
		want := map[domain.HubID]Tip{}
		seq := uint64(0)
		var commits []Commit
		for range rapid.IntRange(1, 20).Draw(t, "commits") {
			seq++
			if rapid.IntRange(0, 9).Draw(t, "begins a term") == 0 {
				commits = append(commits, Commit{Seq: seq})
				streamstest.Must(t, x.Apply(commits[len(commits)-1]))
				continue
			}
			var records []Record
			for n := range rapid.IntRange(1, 5).Draw(t, "records") {
				hub := rapid.SampledFrom([]domain.HubID{hubA, hubB}).Draw(t, "hub")
				tip := want[hub]
				tip.Seq, tip.Commit = tip.Seq+1, seq
				r := event(hub, tip.Seq, int(seq)*10+n)
				switch kind := Kind(rapid.IntRange(1, 4).Draw(t, "kind")); kind {
				case KindCommand:
					r = Record{Hub: hub, Seq: r.Seq, Time: r.Time, Kind: kind, Payload: r.Payload}
				case KindState:
					r = Record{
						Hub: hub, Seq: r.Seq, Time: r.Time, Kind: kind, Payload: r.Payload,
						EpochID: r.EpochID, OrgID: r.OrgID,
					}
					tip.StateSeq = tip.Seq
				case KindCloudEvent:
					r.Kind, tip.CloudEvent = kind, tip.Seq
				default:
					tip.HubEvent = tip.Seq
				}
				if r.Kind.IsEvent() {
					tip.Events++
				}
				tip.Time = r.Time
				want[hub] = tip
				records = append(records, r)
			}
			c, err := NewCommit(seq, 1, records, x.Tip)
			streamstest.Must(t, err)
			commits = append(commits, c)
			// The writer's own commit, and the same again from a follower.
			streamstest.Must(t, x.Apply(c))
		}
		streamstest.Must(t, x.Apply(commits...))
		for hub, want := range want {
			got, ok := x.Tip(hub)
			got.anchor, got.number = 0, 0
			if !ok || got != want {
				t.Fatalf("tip of %s is %+v, %t, want %+v", hub, got, ok, want)
			}
		}
		if x.Position() != seq || len(x.tips) != len(want) {
			t.Fatalf("the index is at %d with %d hubs, want %d and %d",
				x.Position(), len(x.tips), seq, len(want))
		}
		if err := x.Apply(Commit{Seq: seq + 2}); err == nil {
			t.Fatal("a commit was applied after a gap")
		}
		before, _ := x.Tip(hubA)
		x.Skip(seq + 1)
		if after, _ := x.Tip(hubA); after != before || x.Position() != seq+1 {
			t.Fatalf("after a gap the index is at %d and has %+v, want %d and %+v", x.Position(), after,
				seq+1, before)
		}
	})
}

// A hub must not cost more memory than documented.
func TestIndexMemory(t *testing.T) {
	const hubs, most = 50_000, 160
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var each int64
	// What former tests have left behind may be freed meanwhile.
	for range 5 {
		before := heap()
		x := NewIndex(0)
		for n := 0; n < hubs; n += 100 {
			var records []Record
			for i := range 100 {
				hub := domain.HubID(fmt.Sprintf("hub-aaaa-%09d", n+i))
				records = append(records, event(hub, 1, i))
			}
			c, err := NewCommit(x.Position()+1, 1, records, x.Tip)
			streamstest.Must(t, err)
			streamstest.Must(t, x.Apply(c))
		}
		each = (heap() - before) / hubs
		runtime.KeepAlive(x)
		if each > 0 && each <= most {
			t.Logf("%d bytes a hub", each)
			return
		}
	}
	t.Errorf("the index takes %d bytes a hub, want at most %d", each, most)
}

func TestRestartFromASnapshot(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	s := begin(t, j, NewIndex(0))
	for range 300 { // beyond the first anchor
		s.store(hubA)
	}
	streamstest.Must(t, j.SaveIndex(t.Context(), s.Index))
	saved := s.End()
	s.store(hubA, hubB)

	x, err := j.LoadIndex(t.Context(), 0)
	if err != nil || x.Position() != saved || len(x.tips) != 1 {
		t.Fatalf("LoadIndex = %+v, %v, want position %d with one hub", x, err, saved)
	}
	f, _ := follow(t, j, x.Position()+1)
	streamstest.Must(t, x.Apply(f.sync(t)...))
	if !maps.Equal(x.tips, s.tips) || x.position != s.position || x.id != s.id {
		t.Errorf("after the restart the index is %+v, want %+v", x.tips, s.tips)
	}
	if s := begin(t, j, x); s.store(hubA).Links[0].First != 302 {
		t.Errorf("the next record has sequence %d, want 302", s.tips[hubA].seq)
	}
}

func TestSnapshotOfManyParts(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	s := begin(t, j, NewIndex(0))
	many := &Index{position: s.End(), tips: map[domain.HubID]tip{}}
	for n := range 30_000 {
		many.tips[domain.HubID(fmt.Sprintf("hub-aaaa-%09d", n))] = tip{
			seq: uint64(n) + 7, hubEvent: uint64(n) + 5, cloudEvent: 4, state: uint64(n) + 6,
			commit: 1, nanos: began.UnixNano(), number: 3,
		}
	}
	for _, x := range []*Index{many, {position: s.End(), tips: map[domain.HubID]tip{}}} {
		x.saved = 0
		streamstest.Must(t, j.SaveIndex(t.Context(), x))
		got, err := j.LoadIndex(t.Context(), 0)
		if err != nil || !maps.Equal(got.tips, x.tips) || got.position != x.position {
			t.Errorf("LoadIndex: %v; the index has %d hubs, want %d", err, len(got.tips), len(x.tips))
		}
	}
	info, err := j.api.Info(t.Context(), streams.JournalIndexStream)
	if err != nil || info.State.Msgs < 2 {
		t.Errorf("the snapshots had %d parts, %v; want at least 2", info.State.Msgs, err)
	}
}

// A snapshot that does not fit the journal must not be used: its numbers are of another log.
func TestSnapshotOfAnotherJournal(t *testing.T) {
	t.Parallel()
	j := open(t, streamstest.Start(t), Config{})
	s := begin(t, j, NewIndex(0))
	s.store(hubA)
	for name, x := range map[string]*Index{
		"beyond its end": {position: s.End() + 1, id: s.id, tips: s.tips},
		"another commit": {position: s.End(), id: commitID{1}, tips: s.tips},
	} {
		streamstest.Must(t, j.SaveIndex(t.Context(), x))
		got, err := j.LoadIndex(t.Context(), 0)
		if err != nil || got.Position() != 0 || len(got.tips) != 0 {
			t.Errorf("%s: LoadIndex = %+v, %v, want an empty index", name, got, err)
		}
	}
	streamstest.Must(t, j.SaveIndex(t.Context(), s.Index))
	if _, err := jsapi.Append(
		t.Context(), j.cfg.Conn, message(streams.JournalIndexSubject(0, 0), "damaged"),
	); err != nil {
		t.Fatal(err)
	}
	if got, err := j.LoadIndex(t.Context(), 0); err != nil || got.Position() != 0 {
		t.Errorf("of a damaged snapshot: LoadIndex = %+v, %v, want an empty index", got, err)
	}
}

func TestPartsOfDifferentSnapshots(t *testing.T) {
	t.Parallel()
	tips := map[domain.HubID]tip{}
	for n := range 15_000 {
		hub := domain.HubID(strings.Repeat("h", 30) + fmt.Sprint(n))
		tips[hub] = tip{seq: 1, commit: 1, nanos: 1}
	}
	first := (&snapshot{generation: [8]byte{1}, position: 1, tips: tips}).marshal()
	second := (&snapshot{generation: [8]byte{2}, position: 1, tips: tips}).marshal()
	if len(first) != 2 || len(second) != 2 {
		t.Fatalf("%d and %d parts, want 2", len(first), len(second))
	}
	var s snapshot
	streamstest.Must(t, s.unmarshalPart(0, first[0]))
	if err := s.unmarshalPart(1, second[1]); !errors.Is(err, errOtherGeneration) {
		t.Errorf("a part of another snapshot: %v, want errOtherGeneration", err)
	}
}

func FuzzUnmarshalSnapshot(f *testing.F) {
	s := snapshot{
		generation: [8]byte{1}, position: 300, id: commitID{2}, tips: map[domain.HubID]tip{
			hubA: {
				seq: 9, hubEvent: 8, cloudEvent: 2, state: 3, commit: 299, anchor: 40, nanos: 1,
				number: 3,
			},
			hubB: {seq: 1, commit: 1, nanos: 1},
		},
	}
	f.Add(s.marshal()[0])
	f.Add((&snapshot{}).marshal()[0])
	f.Fuzz(func(t *testing.T, data []byte) {
		var s snapshot
		if err := s.unmarshalPart(0, data); err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("unmarshalPart: %v, want ErrUnreadable", err)
			}
			return
		}
		var again snapshot
		for part, data := range s.marshal() {
			if err := again.unmarshalPart(part, data); err != nil {
				t.Fatalf("unmarshalPart of what marshal wrote: %v", err)
			}
		}
		s.parts, again.parts = 0, 0
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("snapshot is %+v, want %+v", again, s)
		}
	})
}
